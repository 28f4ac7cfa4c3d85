"""Recipes of documents (texts of sentences): what is refused, and what an override drops."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.recipe import load_recipe
from tests.recipe.refusing import Refused, find_problems, mentions, problems_of

TEXTS: dict[str, Any] = {"inputs": {"doc": {"kind": "texts"}}, "encoder": {"kind": "hierarchical"}}

REFUSED = [
    Refused({"inputs": {"doc": {"kind": "texts"}}}, {"encoder.kind": "readers"}, "recurrent doc texts hierarchical"),
    Refused(
        {"inputs": {"doc": {}}, "encoder": {"kind": "hierarchical"}},
        {"encoder.kind": "readers"},
        "hierarchical doc deep-sets recurrent",
    ),
    Refused(
        {"inputs": {"doc": {"max_sentences": 3}}}, {"inputs.doc.max_sentences": "unknown-key"}, "max_length column"
    ),
    Refused({"inputs": {"doc": {"kind": "textes"}}}, {"inputs.doc.kind": "kind"}, "textes texts"),
    Refused({**TEXTS, "attention": {"over": "doc.word"}}, {"attention.over": "places"}, "doc.word doc.words doc"),
    Refused(
        {**TEXTS, "attention": {"over": "doc.words"}},
        {"attention.over": "sentences"},
        "sentences attention.through decoder.start",
    ),
    Refused(
        {**TEXTS, "attention": {"over": ["doc", "doc.words"], "through": "sentences"}},
        {"attention.through": "through"},
        "doc attention.over doc.words",
    ),
    Refused(
        {**TEXTS, "attention": {"over": "doc.words", "through": "sentences", "heads": 7}},
        {"attention.heads": "attention-sizes"},
        "doc.words 7 512",
    ),
    Refused(
        {
            **TEXTS,
            "encoder": {"kind": "hierarchical", "levels": ["recurrent", "transformer"]},
            "attention": {"over": "doc.words", "through": "sentences", "score": "dot"},
            "decoder": {"size": 512},
        },
        {"attention.score": "attention-sizes"},
        "dot decoder.size doc 512 256",
    ),
    Refused(
        {"inputs": {"doc": {"kind": "texts"}}, "encoder": {"kind": "transformer"}, "attention": {"over": "doc.words"}},
        {"encoder.kind": "readers"},
        "transformer doc texts hierarchical encoder.levels",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "self"}},
        {"encoder.levels": "type"},
        "self recurrent transformer 2",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "cell": "lstm"}},
        {"encoder.cell": "other-kind"},
        "encoder.levels recurrent",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "bidirectional": False}},
        {"encoder.bidirectional": "other-kind"},
        "encoder.levels recurrent",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "heads": 2}},
        {"encoder.heads": "other-kind"},
        "encoder.levels transformer",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "longest": 9}},
        {"encoder.longest": "no-effect"},
        "sinusoidal",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": ["recurrent", "transformer"], "heads": 7}},
        {"encoder.heads": "heads"},
        "7 256",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "positions": "learned"}},
        {"inputs.doc.max_length": "learned-positions", "inputs.doc.max_sentences": "learned-positions"},
        "learned 1 512",
    ),
    Refused(
        {**TEXTS, "attention": {"through": "sentences"}},
        {"attention.through": "through"},
        "doc attention.over doc.words",
    ),
    Refused(
        {**TEXTS, "search": {"replace_unknown": True}}, {"search.replace_unknown": "unknown-words"}, "doc sentences"
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "pooling": "attention"}},
        {"encoder.pooling": "no-effect"},
        "summary",
    ),
    Refused(
        {**TEXTS, "encoder": {"kind": "hierarchical", "words": "last", "pooling_size": 9}},
        {"encoder.pooling_size": "no-effect"},
        "states",
    ),
    Refused(
        {**TEXTS, "inputs": {"doc": {"kind": "texts", "keep": "last"}}},
        {"inputs.doc.keep": "no-effect"},
        "max_sentences",
    ),
    Refused(
        {**TEXTS, "inputs": {"doc": {"kind": "texts"}, "other": {"share": "doc"}}},
        {"inputs.other.share": "share"},
        "text texts doc",
    ),
    Refused(
        {**TEXTS, "attention": {"score": "dot"}}, {"attention.score": "attention-sizes"}, "dot decoder.size doc 256 512"
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_recipes_of_documents(case: Refused) -> None:
    case.check()


def test_an_unread_input_hides_no_problem_but_that_of_its_own_places() -> None:
    unread = {"inputs": {"doc": {"kind": "texts"}, "text": {}}, "encoder": {"kind": "transformer"}}
    problems = find_problems({**unread, "attention": {"over": ["nowhere", "doc.words", "text.words"]}})
    problems = sorted(problems, key=lambda problem: problem.path, reverse=True)
    assert [problem.path for problem in problems] == ["encoder.kind", "attention.over", "attention.over"]
    reader, nowhere, words = (problem.message for problem in problems)
    assert mentions(reader, "doc")
    assert all(mentions(nowhere, fact) for fact in ("nowhere", "doc", "text"))
    assert mentions(words, "text.words")


def test_an_override_drops_what_it_makes_meaningless() -> None:
    recipe = load_recipe("dialog-history", overrides=["attention.over=history"])
    assert recipe.attention.through is None
    assert not recipe.search.replace_unknown
    assert load_recipe("dialog-history", overrides=["attention=none"]).started_by == ["history"]


def test_sentences_are_looked_at_unless_words_are_asked_for() -> None:
    assert load_recipe(TEXTS).looked_at == ["doc"]
    assert load_recipe({**TEXTS, "attention": {"over": "doc.words", "through": "sentences"}}).used == {"doc"}


def test_each_level_has_its_own_kind_and_size() -> None:
    both = load_recipe("summarisation-hierarchical", overrides=["encoder.levels=transformer"])
    assert (both.view_of("document"), both.view_of("document.words")) == ((192, "sentences"), (192, "tokens"))
    mixed = load_recipe("summarisation-hierarchical", overrides=["encoder.levels=[recurrent, transformer]"])
    assert (mixed.view_of("document"), mixed.view_of("document.words")) == ((192, "sentences"), (384, "tokens"))
    assert mixed.encoder_of("document").summary_size == 192


@pytest.mark.parametrize("name", ["document-classification", "summarisation-hierarchical", "dialog-history"])
def test_a_transformer_by_its_kind_alone_is_refused_with_the_key_that_makes_one(name: str) -> None:
    change = "encoder.kind=transformer"
    assert problems_of(name, change) == [("encoder.kind", "readers")]
    assert all(mentions(find_problems(name, change)[0].message, fact) for fact in ("hierarchical", "encoder.levels"))


def test_windows_are_refused_among_sentences_and_allowed_among_words() -> None:
    local = "attention.scope=local-monotonic"
    (problem,) = find_problems("document-classification", local)
    assert (problem.path, problem.rule) == ("attention.scope", "scope")
    words = ["attention.over=document.words", "decoder.start=document"]
    assert all(mentions(problem.message, fact) for fact in (*words[0].split("="), *words[1].split("=")))
    assert load_recipe("document-classification", overrides=[local, *words]).looked_at == ["document.words"]
