"""Recipes of documents: what is refused, with the path, and what an override drops."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe

TEXTS: dict[str, Any] = {"inputs": {"doc": {"kind": "texts"}}, "encoder": {"kind": "hierarchical"}}

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"inputs": {"doc": {"kind": "texts"}}},
        "encoder.kind: recurrent does not read 'doc', an input of kind texts; allowed: hierarchical",
    ),
    (
        {"inputs": {"doc": {}}, "encoder": {"kind": "hierarchical"}},
        "encoder.kind: hierarchical does not read 'doc', an input of kind text; allowed: deep-sets, recurrent",
    ),
    (
        {"inputs": {"doc": {"max_sentences": 3}}},
        "inputs.doc.max_sentences: unknown key (did you mean",
    ),
    (
        {"inputs": {"doc": {"kind": "textes"}}},
        "inputs.doc.kind: 'textes' is not allowed (did you mean 'texts'?); allowed: ",
    ),
    (
        {**TEXTS, "attention": {"over": "doc.word"}},
        "attention.over: there is no input 'doc.word' (did you mean 'doc.words'?); allowed: doc, doc.words",
    ),
    (
        {**TEXTS, "attention": {"over": "doc.words"}},
        "attention.over: doc.words alone leaves the sentences unused; set attention.through to sentences",
    ),
    (
        {**TEXTS, "attention": {"over": ["doc", "doc.words"], "through": "sentences"}},
        "attention.through: 'doc' has no places inside larger ones; attention.over: doc.words",
    ),
    (
        {**TEXTS, "attention": {"over": "doc.words", "through": "sentences", "heads": 7}},
        "attention.heads: places of 'doc.words': 7 heads cannot share 512 numbers",
    ),
    (
        {
            **TEXTS,
            "encoder": {"kind": "hierarchical", "levels": ["recurrent", "transformer"]},
            "attention": {"over": "doc.words", "through": "sentences", "score": "dot"},
            "decoder": {"size": 512},
        },
        "attention.score: dot needs decoder.size equal to the size of the places of 'doc', got 512 and 256",
    ),
    (
        {"inputs": {"doc": {"kind": "texts"}}, "encoder": {"kind": "transformer"}, "attention": {"over": "doc.words"}},
        "encoder.kind: transformer does not read 'doc', an input of kind texts; allowed: hierarchical with",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "self"}},
        "encoder.levels: should be recurrent, transformer or list of 2",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "cell": "lstm"}},
        "encoder.cell: has no effect here: only encoder.levels recurrent",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "bidirectional": False}},
        "encoder.bidirectional: has no effect here: only encoder.levels recurrent",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "heads": 2}},
        "encoder.heads: has no effect here: only encoder.levels transformer",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "longest": 9}},
        "encoder.longest: has no effect here: positions sinusoidal have no limit",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": ["recurrent", "transformer"], "heads": 7}},
        "encoder.heads: 7 heads cannot share 256 numbers; allowed: what divides 256",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "levels": "transformer", "positions": "learned"}},
        "inputs.doc.max_sentences: no limit, and learned positions reach to 512; allowed: 1 to 512",
    ),
    (
        {**TEXTS, "attention": {"through": "sentences"}},
        "attention.through: 'doc' has no places inside larger ones; attention.over: doc.words",
    ),
    (
        {**TEXTS, "search": {"replace_unknown": True}},
        "search.replace_unknown: has no effect here: the places of 'doc' are sentences, no words to put in",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "pooling": "attention"}},
        "encoder.pooling: has no effect here: no summary is used",
    ),
    (
        {**TEXTS, "encoder": {"kind": "hierarchical", "words": "last", "pooling_size": 9}},
        "encoder.pooling_size: has no effect here: no states are weighed",
    ),
    (
        {**TEXTS, "inputs": {"doc": {"kind": "texts", "keep": "last"}}},
        "inputs.doc.keep: has no effect here: without max_sentences all are kept",
    ),
    (
        {**TEXTS, "inputs": {"doc": {"kind": "texts"}, "other": {"share": "doc"}}},
        "inputs.other.share: kind is text here and texts in doc: one encoder reads one kind",
    ),
    (
        {**TEXTS, "attention": {"score": "dot"}},
        "attention.score: dot needs decoder.size equal to the size of the places of 'doc'",
    ),
]


@pytest.mark.parametrize(("raw", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_what_cannot_work_is_named(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        load_recipe(raw)
    assert message in str(raised.value)


def test_an_unread_input_hides_nothing_but_its_own_places() -> None:
    unread = {"inputs": {"doc": {"kind": "texts"}, "text": {}}, "encoder": {"kind": "transformer"}}
    with pytest.raises(UserError) as raised:
        load_recipe({**unread, "attention": {"over": ["nowhere", "doc.words", "text.words"]}})
    said = str(raised.value)
    assert "encoder.kind: transformer does not read 'doc'" in said
    assert "attention.over: there is no input 'nowhere'; allowed: doc, text" in said
    assert "attention.over: there is no input 'text.words'" in said
    assert "'doc.words'" not in said


def test_what_a_change_makes_meaningless_is_dropped() -> None:
    made = load_recipe("dialog-history", overrides=["attention.over=history"])
    assert made.attention.through is None
    assert not made.search.replace_unknown
    assert load_recipe("dialog-history", overrides=["attention=none"]).started_by == ["history"]


def test_sentences_are_looked_at_unless_words_are_asked_for() -> None:
    assert load_recipe(TEXTS).looked_at == ["doc"]
    assert load_recipe({**TEXTS, "attention": {"over": "doc.words", "through": "sentences"}}).used == {"doc"}


def test_levels_are_one_word_away_and_of_sizes_of_their_own() -> None:
    made = load_recipe("summarisation-hierarchical", overrides=["encoder.levels=transformer"])
    assert (made.view_of("document"), made.view_of("document.words")) == ((192, "sentences"), (192, "tokens"))
    mixed = load_recipe("summarisation-hierarchical", overrides=["encoder.levels=[recurrent, transformer]"])
    assert (mixed.view_of("document"), mixed.view_of("document.words")) == ((192, "sentences"), (384, "tokens"))
    assert mixed.encoder_of("document").summary_size == 192


@pytest.mark.parametrize("name", ["document-classification", "summarisation-hierarchical", "dialog-history"])
def test_a_transformer_asked_for_by_its_kind_names_the_key(name: str) -> None:
    with pytest.raises(UserError) as raised:
        load_recipe(name, overrides=["encoder.kind=transformer"])
    assert str(raised.value).count("\n") == 0
    assert "allowed: hierarchical with encoder.levels transformer" in str(raised.value)
