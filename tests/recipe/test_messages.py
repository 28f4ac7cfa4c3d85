"""Every error of a recipe is said with its key, the value given and what is allowed, and all of them at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from tests.recipe.refusing import LABEL, ONE, TWO, refused

KEYS_AND_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"decodr": {}}, "decodr: unknown key (did you mean 'decoder'?); allowed: task, description, inputs, output, data"),
    ({"decoder": {"sizes": 3}}, "decoder.sizes: unknown key (did you mean 'size'?); allowed: kind, size"),
    (
        {"inputs": {"x": {"tokns": "word"}}},
        "inputs.x.tokns: unknown key (did you mean 'tokens'?); allowed: kind, column",
    ),
    ({"inputs": {"column": {"encoder": {"cel": 1}}}}, "inputs.column.encoder.cel: unknown key (did you mean 'cell'?)"),
    ({"output": {"kind": "label", "tokns": 3}}, "output.tokns: unknown key; allowed: kind, column"),
    (
        {"output": {"tokns": 3}},
        "output.tokns: unknown key (did you mean 'tokens'?); allowed: kind, column, tokens",
    ),
    ({"output": {"text": 3}}, "output.text: unknown key; allowed: kind, column"),
    ({1: 2}, "1: unknown key; allowed: task, description"),
    (
        {"output": {"kind": "lable"}},
        "output.kind: 'lable' is not allowed (did you mean 'label'?); allowed: image, label",
    ),
    ({"output": 3}, "output: should be mapping of keys, got 3"),
    ({"inputs": 3}, "inputs: should be mapping of texts to mappings of keys, got 3"),
    ({"inputs": {"x": None}}, "inputs.x: should be mapping of keys, got None"),
    ({"inputs": {1: {}}}, "inputs.1: a key should be a text, got 1"),
    ({"attention": False}, "attention: should be mapping of keys, got False"),
    ({"decoder": {"cell": "gur"}}, "decoder.cell: 'gur' is not allowed (did you mean 'gru'?); allowed: rnn, gru, lstm"),
    ({"attention": {"scope": "local"}}, "attention.scope: 'local' is not allowed (did you mean 'local-monotonic'?)"),
    ({"decoder": {"cell": 3}}, "decoder.cell: 3 is not allowed; allowed: rnn, gru, lstm"),
    ({"inputs": {"x": {"kind": "smell"}}}, "inputs.x.kind: 'smell' is not allowed; allowed: image, "),
    ({"decoder": {"size": 0}}, "decoder.size: should be greater than 0, got 0"),
    ({"decoder": {"size": "big"}}, "decoder.size: should be a whole number, got 'big'"),
    ({"decoder": {"size": 1.5}}, "decoder.size: should be a whole number, got 1.5"),
    (
        {"decoder": {"kind": "transformer", "memory": "ten"}},
        "decoder.memory: should be a whole number above 0, got 'ten'",
    ),
    ({"decoder": {"dropout": "much"}}, "decoder.dropout: should be a number, got 'much'"),
    ({"training": {"betas": ["a", 0.9]}}, "training.betas.0: should be a number from 0, below 1, got 'a'"),
    ({"decoder": {"dropout": 1.0}}, "decoder.dropout: should be less than 1, got 1.0"),
    ({"training": {"learning_rate": float("inf")}}, "training.learning_rate: should be a finite number, got inf"),
    ({"training": {"betas": [0.9]}}, "training.betas: should be list of 2 numbers from 0, below 1, got [0.9]"),
    ({"training": {"betas": [0.9, 1.0]}}, "training.betas.1: should be less than 1, got 1.0"),
    ({"training": {"betas": [-0.1, 0.9]}}, "training.betas.0: should be greater than or equal to 0, got -0.1"),
    ({"training": {"checkpoint_every": 0}}, "training.checkpoint_every: should be greater than 0, got 0"),
    ({"search": {"length_penalty": 1e300}}, "search.length_penalty: should be less than or equal to 10, got 1e+300"),
    ({"search": {"length_penalty": -1}}, "search.length_penalty: should be greater than or equal to 0, got -1"),
    (
        {**ONE, "attention": {"scope": "local-monotonic", "window": 10**20}},
        "attention.window: should be less than or equal to 1000000, got 1000000000000",
    ),
    (
        {**ONE, "attention": {"score": "coverage", "kernel": 10**6}},
        "attention.kernel: should be less than or equal to 255, got 1000000",
    ),
    ({"attention": {"temperature": 1e-300}}, "attention.temperature: should be greater than or equal to 0.001, got 1e"),
    ({"attention": {"over": 3}}, "attention.over: should be text or list of texts, got 3"),
    ({"attention": {"over": [1]}}, "attention.over: should be text or list of texts, got [1]"),
    (
        {"loss": {"class_weights": "x"}},
        "loss.class_weights: should be none, balanced or mapping of texts to numbers above 0, got",
    ),
    (
        {"loss": {"class_weights": {"a": "b"}}},
        "loss.class_weights: should be none, balanced or mapping of texts to numb",
    ),
    (
        {"loss": {"class_weights": {"yes": 2, "no": 0}}},
        "loss.class_weights: should be none, balanced or mapping of texts to numbers above 0, got {'yes': 2, 'no': 0}",
    ),
    ({"evaluation": {"metrics": "bleu"}}, "evaluation.metrics: should be list of texts, got 'bleu'"),
    ({"data": {"quoting": "maybe"}}, "data.quoting: should be true or false, got"),
    (
        {"evaluation": {"baseline": "copi"}},
        "evaluation.baseline: 'copi' is not allowed (did you mean 'copy'?); allowed: c",
    ),
]


@pytest.mark.parametrize(("raw", "message"), KEYS_AND_VALUES, ids=[message[:40] for _, message in KEYS_AND_VALUES])
def test_a_wrong_key_or_value_is_named(raw: dict[str, Any], message: str) -> None:
    said = refused(raw)
    assert said.startswith(f"recipe: {message}")
    assert "\n" not in said


COMBINATIONS: list[tuple[dict[str, Any], str]] = [
    (
        {**ONE, "attention": "adittive"},
        (
            "attention.score: 'adittive' is not allowed (did you mean 'additive'?); allowed: dot, scaled-dot, cosine, "
            "general, additive, concat, deep, location, coverage, static, uniform, none"
        ),
    ),
    ({"attention": "dot"}, "attention.score: dot has nothing to look at in a model without inputs; allowed: none"),
    ({"attention": {"size": 9}}, "attention.size: has no effect here: attention.score is none"),
    ({**ONE, "attention": {"over": []}, "decoder": {"start": "source"}}, "attention.over: names no input; to switch"),
    (
        {**ONE, "attention": {"over": "sorce"}, "decoder": {"start": "source"}},
        "attention.over: there is no input 'sorce' (did you mean 'source'?); allowed: source",
    ),
    ({**ONE, "decoder": {"start": "target"}}, "decoder.start: there is no input 'target'; allowed: source, none"),
    ({**ONE, "decoder": {"every_step": ["x"]}}, "decoder.every_step: there is no input 'x'; allowed: source, none"),
    ({"inputs": {"my input": {}}}, "inputs.my input: not a name for an input; allowed: letters, digits and _"),
    ({"inputs": {"output": {}}}, "inputs.output: not a name for an input"),
    ({"inputs": {"training": {}}}, "inputs.training: not a name for an input"),
    ({"inputs": {"_x": {}}}, "inputs._x: not a name for an input"),
    (
        {**LABEL, "decoder": {"kind": "recurrent"}},
        "decoder.kind: recurrent cannot write an output of kind label; allowed: l",
    ),
    (
        {**ONE, "decoder": {"kind": "label"}},
        "decoder.kind: label cannot write an output of kind text; allowed: recurrent",
    ),
    ({"output": {"kind": "label"}}, "inputs: a label needs at least one input"),
    (
        {**ONE, "data": {"stream": True}},
        "data.stream: only a language model (no inputs, output of kind text) reads a str",
    ),
    (
        {**ONE, "encoder": {"embedding": {"kind": "pretrained"}}},
        "encoder.embedding.path: a pretrained embedding needs a file of vectors",
    ),
    (
        {"inputs": {"x": {"encoder": {"embedding": {"kind": "pretrained"}}}}},
        "inputs.x.encoder.embedding.path: a pretrained embedding needs a file of vectors",
    ),
    (
        {**ONE, "decoder": {"tied": True, "embedding": {"kind": "one-hot"}}},
        "decoder.tied: a one-hot embedding has no weights to tie; allowed: false",
    ),
    ({**TWO, "attention": {"over": "a"}}, "inputs.b: is read and never used; name it in attention.over, decoder.start"),
    ({**ONE, "output": {"share": "sourse"}}, "output.share: 'sourse' is no other input with a vocabulary of its own"),
    (
        {"inputs": {"a": {"share": "a"}}},
        "inputs.a.share: 'a' is no other input with a vocabulary of its own; allowed: none",
    ),
    (
        {"inputs": {"a": {"share": "b"}, "b": {"share": "a"}}},
        "2 problems\n  inputs.a.share: 'b' is no other input with a vocabulary of its own",
    ),
    (
        {**ONE, "output": {"share": "source", "tokens": "character"}},
        "output.share: tokens are character here and word in source: must be the same",
    ),
    (
        {**ONE, "attention": {"query": "current", "input_feeding": False}, "decoder": {"output": "state"}},
        "decoder.output: state leaves the context unseen; allowed: all, or attention.input_feeding true",
    ),
    ({**LABEL, "decoder": {"output": "state"}}, "decoder.output: state leaves the context unseen; allowed: all"),
    (
        {"evaluation": {"metrics": ["exact", "perplexity"]}},
        "evaluation.metrics: 'exact' cannot be taken of a language model; allowed: perplexity",
    ),
    (
        {**LABEL, "evaluation": {"metrics": ["bleu_lc", "accuracy", "perplexity", "exact@5"]}},
        "evaluation.metrics: 'bleu_lc', 'exact@5' cannot be taken of a label",
    ),
    (
        {**ONE, "evaluation": {"metrics": ["accuracy"]}},
        "evaluation.metrics: 'accuracy' cannot be taken of a text; allowed: perplexity, ",
    ),
    ({"training": {"metric": "bleu"}}, "training.metric: 'bleu' cannot be taken of a language model; allowed: perplex"),
    (
        {**ONE, "training": {"metric": "exact"}},
        "training.metric: 'exact' is not among what is measured; add it to evaluation.metrics (bleu, chrf, perplexity)",
    ),
    *(
        (
            {"evaluation": {"baseline": name}},
            f"evaluation.baseline: '{name}' is no trivial model of a language model; allowed: unigram, none",
        )
        for name in ("copy", "lead", "frequent", "majority")
    ),
    (
        {**LABEL, "evaluation": {"baseline": "unigram"}},
        "evaluation.baseline: 'unigram' is no trivial model of a label; allowed: copy, lead, majority, bag-of-words",
    ),
    (
        {**ONE, "evaluation": {"baseline": "majority"}},
        "evaluation.baseline: 'majority' is no trivial model of a text; allowed: copy, lead, frequent, unigram, none",
    ),
    ({"search": {"min_length": 9, "max_length": 8}}, "search.min_length: 9 is more than search.max_length 8"),
]

SIZES: list[tuple[dict[str, Any], str]] = [
    (
        {**ONE, "attention": score, "encoder": {"size": 100}},
        (
            f"attention.score: {score} needs decoder.size equal to the size of the places of 'source', got 256 and "
            "200; use general or additive, or set decoder.size=200"
        ),
    )
    for score in ("dot", "scaled-dot", "cosine")
] + [
    (
        {**ONE, "decoder": {"start": "source", "start_by": "copy"}},
        (
            "decoder.start_by: copy needs decoder.size equal to the summary's size, got 256 and 512; use dense, or set "
            "decoder.size=512"
        ),
    ),
    (
        {**TWO, "decoder": {"start": ["a", "b"], "start_by": "copy", "size": 512}},
        "decoder.start_by: copy needs decoder.size equal to the summary's size, got 512 and 1024",
    ),
    (
        {**TWO, "decoder": {"start": "a", "join": "compare"}},
        "decoder.join: compare needs two inputs in decoder.start, got 1",
    ),
    (
        {
            "inputs": {"a": {"encoder": {"size": 8}}, "b": {"encoder": {"size": 4, "bidirectional": False}}},
            "decoder": {"every_step": ["a", "b"], "join": "compare"},
        },
        "decoder.join: compare needs summaries of one size, got 16 (a) and 4 (b)",
    ),
]


@pytest.mark.parametrize(
    ("raw", "message"), COMBINATIONS + SIZES, ids=[message[:40] for _, message in COMBINATIONS + SIZES]
)
def test_what_cannot_work_together_is_named(raw: dict[str, Any], message: str) -> None:
    assert refused(raw).startswith(f"recipe: {message}")


def test_all_problems_are_said_at_once() -> None:
    said = refused({"decodr": 1, "decoder": {"join": "x", "size": -1}, "output": {"kind": "label", "case": "lower"}})
    assert [line.split(":")[0].strip() for line in said.splitlines()[1:]] == [
        "output.case",
        "decoder.size",
        "decoder.join",
        "decodr",
    ]
    assert said.startswith("recipe: 4 problems\n")
    raw = {**LABEL, "decoder": {"kind": "recurrent", "start": "source", "start_by": "copy"}, "search": {"beam": 3}}
    said = refused(raw)
    assert said.splitlines()[0] == "recipe: 3 problems"
    assert all(f"  {path}: " in said for path in ("decoder.kind", "decoder.start_by", "search.beam"))


def test_a_file_is_named_with_the_line_at_fault(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    cases = {
        "inputs:\n  source: {}\n  - x\n": f"{path}, line 3, column 3: not YAML: ",
        "inputs: [\n": f"{path}, line 2, column 1: not YAML: ",
        "decoder:\n  size: 3\n  size: 4\n": f"{path}, line 3, column 3: key 'size' is given twice",
        "task: !!python/object/apply:os.getcwd []\n": f"{path}, line 1, column 7: the tag '!!python",
        "- a\n- b\n": f"{path}: a recipe is a mapping of keys (inputs, output, attention, ...), got ['a', 'b']",
        "": f"{path}: a recipe is a mapping of keys (inputs, output, attention, ...), got an empty file",
        "decoder: {sise: 3}\n": f"{path}: decoder.sise: unknown key (did you mean 'size'?)",
    }
    for text, message in cases.items():
        path.write_text(text, encoding="utf-8")
        assert refused(path).startswith(message)
        assert refused(str(path)).startswith(message)


def test_a_file_that_is_no_text_or_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"task: \xff\xfe\x00")
    assert refused(path).startswith(f"{path}, line 1: not UTF-8 text (byte 6)")
    assert refused(tmp_path / "none.yaml").startswith(f"{tmp_path / 'none.yaml'}: missing")


def test_one_mistake_is_one_problem() -> None:
    said = refused({**ONE, "attention": {"through": "sentences"}})
    assert said == "recipe: attention.through: 'source' has no places inside larger ones"


def test_a_key_of_an_inputs_own_encoder_is_pointed_at() -> None:
    with pytest.raises(UserError, match=r"encoder\.backbone: unknown key.*own: inputs\.image\.encoder\.backbone"):
        load_recipe("image-captioning", overrides=["encoder.backbone=small"])


def test_coverage_needs_more_than_one_step() -> None:
    for kind in ("label", "transformer"):
        said = refused({**LABEL, "attention": "coverage", "decoder": {"kind": kind}})
        assert "attention.score: coverage goes by earlier looks, and a label is decoded in one step" in said
        assert "additive" in said.partition("allowed:")[2]
        assert "coverage" not in said.partition("allowed:")[2]
    load_recipe({**ONE, "attention": "coverage"})


def test_only_keys_that_an_encoder_has_are_offered_and_one_mistake_is_said_once() -> None:
    given = {"image": {"kind": "image", "encoder": {"size": 8}}, "question": {"encoder": {"size": 8}}}
    assert "inputs." not in refused({"inputs": given, "encoder": {"levels": "transformer"}})
    assert refused({"inputs": given, "encoder": {"channels": [8]}}).endswith(
        "'image' has an encoder of its own: inputs.image.encoder.channels"
    )
    assert "2 problems" in refused({"inputs": {"a": {"encoder": {"cel": 1}}}, "encoder": {"cel": 1}})


def test_a_models_folder_is_no_recipe_and_holds_one(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("task: x\n", encoding="utf-8")
    assert (
        refused(str(tmp_path))
        == f"{tmp_path}: a model's folder, and a recipe is expected here; {tmp_path}/recipe.yaml is one"
    )


def test_windows_among_sentences_are_refused_and_what_is_offered_instead_works() -> None:
    made = ("document-classification", "attention.scope=local-monotonic")
    assert (
        "attention.scope: local-monotonic is a window in a line or a grid, and the places of 'document' are sentences"
        in (refused(*made))
    )
    load_recipe(made[0], overrides=[made[1], "attention.over=document.words", "decoder.start=document"])
