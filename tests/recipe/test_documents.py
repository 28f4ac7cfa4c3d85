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
        "encoder.kind: hierarchical does not read 'doc', an input of kind text; allowed: recurrent, transformer",
    ),
    (
        {"inputs": {"doc": {"max_sentences": 3}}},
        "inputs.doc.max_sentences: unknown key (did you mean",
    ),
    (
        {"inputs": {"doc": {"kind": "textes"}}},
        "inputs.doc.kind: 'textes' is not allowed (did you mean 'texts'?); allowed: text, texts",
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
        {**TEXTS, "attention": {"over": "doc.words", "through": "sentences", "scope": "local-monotonic"}},
        "attention.scope: local-monotonic cannot go through sentences; allowed: global",
    ),
    (
        {**TEXTS, "attention": {"over": "doc.words", "through": "sentences", "heads": 4}},
        "attention.heads: 4 heads cannot go through sentences; allowed: 1",
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
        "encoder.pooling_size: has no effect here: last states are not weighed",
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


def test_what_a_change_makes_meaningless_is_dropped() -> None:
    made = load_recipe("dialog-history", overrides=["attention.over=history"])
    assert made.attention.through is None
    assert not made.search.replace_unknown
    assert load_recipe("dialog-history", overrides=["attention=none"]).started_by == ["history"]


def test_sentences_are_looked_at_unless_words_are_asked_for() -> None:
    assert load_recipe(TEXTS).looked_at == ["doc"]
    assert load_recipe({**TEXTS, "attention": {"over": "doc.words", "through": "sentences"}}).used == {"doc"}
