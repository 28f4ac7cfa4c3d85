"""Rules of whole recipes: settings that do not work together. Each rule has a case in some file of this folder."""

from __future__ import annotations

import pytest

from seq2see.recipe import load_recipe
from tests.recipe.refusing import LABEL, ONE, TWO, Refused, found_problems, mentions, problems_of

COMBINATIONS = [
    Refused(
        {**ONE, "attention": "adittive"},
        {"attention.score": "kind"},
        "adittive additive dot scaled-dot cosine general concat deep location coverage static uniform none",
    ),
    Refused({"attention": "dot"}, {"attention.score": "attention"}, "dot none"),
    Refused({"attention": {"size": 9}}, {"attention.size": "other-kind"}, "attention.score none"),
    Refused(
        {**ONE, "attention": {"over": []}, "decoder": {"start": "source"}},
        {"attention.over": "attention"},
        "attention.score none",
    ),
    Refused(
        {**ONE, "attention": {"over": "sorce"}, "decoder": {"start": "source"}},
        {"attention.over": "places"},
        "sorce source",
    ),
    Refused({**ONE, "decoder": {"start": "target"}}, {"decoder.start": "input-names"}, "target source none"),
    Refused({**ONE, "decoder": {"every_step": ["x"]}}, {"decoder.every_step": "input-names"}, "x source none"),
    Refused({"inputs": {"my input": {}}}, {"inputs.my input": "input-names"}, "letters digits _"),
    Refused({"inputs": {"output": {}}}, {"inputs.output": "input-names"}, "output"),
    Refused({"inputs": {"training": {}}}, {"inputs.training": "input-names"}, "training"),
    Refused({"inputs": {"_x": {}}}, {"inputs._x": "input-names"}),
    Refused(
        {**LABEL, "decoder": {"kind": "recurrent"}}, {"decoder.kind": "decoder-kind"}, "recurrent label transformer"
    ),
    Refused({**ONE, "decoder": {"kind": "label"}}, {"decoder.kind": "decoder-kind"}, "label text recurrent"),
    Refused({"output": {"kind": "label"}}, {"inputs": "missing-input"}, "label"),
    Refused({**ONE, "data": {"stream": True}}, {"data.stream": "stream"}, "inputs false"),
    Refused(
        {**ONE, "encoder": {"embedding": {"kind": "pretrained"}}},
        {"encoder.embedding.path": "pretrained-path"},
        "pretrained file",
    ),
    Refused(
        {"inputs": {"x": {"encoder": {"embedding": {"kind": "pretrained"}}}}},
        {"inputs.x.encoder.embedding.path": "pretrained-path"},
        "pretrained file",
    ),
    Refused(
        {**ONE, "decoder": {"tied": True, "embedding": {"kind": "one-hot"}}},
        {"decoder.tied": "tied"},
        "one-hot false",
    ),
    Refused(
        {**TWO, "attention": {"over": "a"}},
        {"inputs.b": "unused-input"},
        "attention.over decoder.start decoder.every_step",
    ),
    Refused({**ONE, "output": {"share": "sourse"}}, {"output.share": "share"}, "sourse source"),
    Refused({"inputs": {"a": {"share": "a"}}}, {"inputs.a.share": "share"}, "a none"),
    Refused(
        {"inputs": {"a": {"share": "b"}, "b": {"share": "a"}}},
        {"inputs.a.share": "share", "inputs.b.share": "share"},
        "b a",
    ),
    Refused(
        {**ONE, "output": {"share": "source", "tokens": "character"}},
        {"output.share": "share"},
        "tokens character word source",
    ),
    Refused(
        {**ONE, "attention": {"query": "current", "input_feeding": False}, "decoder": {"output": "state"}},
        {"decoder.output": "attention"},
        "state all attention.input_feeding",
    ),
    Refused({**LABEL, "decoder": {"output": "state"}}, {"decoder.output": "attention"}, "state all"),
    Refused(
        {"evaluation": {"metrics": ["exact", "perplexity"]}}, {"evaluation.metrics": "metrics"}, "exact perplexity"
    ),
    Refused(
        {**LABEL, "evaluation": {"metrics": ["bleu_lc", "accuracy", "perplexity", "exact@5"]}},
        {"evaluation.metrics": "metrics"},
        "bleu_lc exact@5 label",
    ),
    Refused(
        {**ONE, "evaluation": {"metrics": ["accuracy"]}}, {"evaluation.metrics": "metrics"}, "accuracy text perplexity"
    ),
    Refused({"training": {"metric": "bleu"}}, {"training.metric": "metrics"}, "bleu perplexity"),
    Refused(
        {**ONE, "training": {"metric": "exact"}},
        {"training.metric": "metrics"},
        "exact evaluation.metrics bleu chrf perplexity",
    ),
    *(
        Refused({"evaluation": {"baseline": name}}, {"evaluation.baseline": "metrics"}, f"{name} unigram none")
        for name in ("copy", "lead", "frequent", "majority")
    ),
    Refused(
        {**LABEL, "evaluation": {"baseline": "unigram"}},
        {"evaluation.baseline": "metrics"},
        "unigram label copy lead majority bag-of-words",
    ),
    Refused(
        {**ONE, "evaluation": {"baseline": "majority"}},
        {"evaluation.baseline": "metrics"},
        "majority copy lead frequent unigram none",
    ),
    Refused(
        {"search": {"min_length": 9, "max_length": 8}}, {"search.min_length": "search-lengths"}, "9 search.max_length 8"
    ),
]

SIZES = [
    *(
        Refused(
            {**ONE, "attention": score, "encoder": {"size": 100}},
            {"attention.score": "attention-sizes"},
            f"{score} decoder.size source 256 200 general additive decoder.size=200",
        )
        for score in ("dot", "scaled-dot", "cosine")
    ),
    Refused(
        {**ONE, "decoder": {"start": "source", "start_by": "copy"}},
        {"decoder.start_by": "summary-sizes"},
        "copy decoder.size 256 512 dense decoder.size=512",
    ),
    Refused(
        {**TWO, "decoder": {"start": ["a", "b"], "start_by": "copy", "size": 512}},
        {"decoder.start_by": "summary-sizes"},
        "copy decoder.size 512 1024",
    ),
    Refused(
        {**TWO, "decoder": {"start": "a", "join": "compare"}},
        {"decoder.join": "join"},
        "compare two decoder.start 1",
    ),
    Refused(
        {
            "inputs": {"a": {"encoder": {"size": 8}}, "b": {"encoder": {"size": 4, "bidirectional": False}}},
            "decoder": {"every_step": ["a", "b"], "join": "compare"},
        },
        {"decoder.join": "summary-sizes"},
        "compare 16 a 4 b",
    ),
]


SCORES_OF_LABELS = [
    Refused(
        {**LABEL, "attention": "coverage", "decoder": {"kind": kind}},
        {"attention.score": "attention"},
        "coverage label additive",
    )
    for kind in ("label", "transformer")
]


@pytest.mark.parametrize("case", [*COMBINATIONS, *SIZES, *SCORES_OF_LABELS], ids=str)
def test_refused_combinations(case: Refused) -> None:
    case.check()


@pytest.mark.parametrize("case", SCORES_OF_LABELS, ids=str)
def test_a_score_that_needs_earlier_steps_is_not_offered_to_a_label(case: Refused) -> None:
    (problem,) = found_problems(case.recipe)
    assert not mentions(problem.message.partition("allowed:")[2], "coverage")
    assert load_recipe({**ONE, "attention": "coverage"}).attention.score == "coverage"


def test_one_mistake_is_one_problem() -> None:
    """Words are looked at through sentences in neither of two rules that `through` breaks."""
    assert problems_of({**ONE, "attention": {"through": "sentences"}}) == [("attention.through", "through")]
