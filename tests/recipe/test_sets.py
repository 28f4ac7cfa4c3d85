"""Recipes of sets: what follows, what is refused with its path, and what an override drops."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.attention import Score, scores
from seq2see.errors import UserError
from seq2see.recipe import load_recipe

SET: dict[str, Any] = {"inputs": {"items": {"kind": "set"}}, "encoder": {"kind": "deep-sets"}}
LOOKING: dict[str, Any] = {"inputs": {"items": {"kind": "set"}}, "encoder": {"kind": "transformer"}}
MARKED: dict[str, Any] = {**SET, "inputs": {"items": {"kind": "set", "separator": ";"}}}
BOTH = {"items": {"kind": "set"}, "question": {}}

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"inputs": {"items": {"kind": "set"}}},
        "encoder.kind: recurrent does not read 'items', an input of kind set; allowed: deep-sets, transformer",
    ),
    (
        {**SET, "inputs": {"items": {"kind": "set", "encoder": {"kind": "hierarchical"}}}},
        "inputs.items.encoder.kind: hierarchical does not read 'items', an input of kind set; allowed: deep-sets, ",
    ),
    (
        {**SET, "inputs": {"doc": {"kind": "texts"}}},
        "encoder.kind: deep-sets does not read 'doc', an input of kind texts; allowed: hierarchical",
    ),
    (
        {**LOOKING, "encoder": {"kind": "transformer", "positions": "learned"}},
        "encoder.positions: learned would give the elements of 'items' an order, and a set has none; allowed: none",
    ),
    (
        {**SET, "attention": {"score": "location"}},
        "location goes by where a place lies, and 'items' is read as a set, which has no order; allowed: dot, scaled-",
    ),
    (
        {**SET, "attention": {"score": "coverage"}},
        "deep, static, uniform, none, or attention.kernel 1",
    ),
    (
        {**SET, "attention": {"scope": "local-predicted"}},
        "attention.scope: local-predicted is a window of neighbours, and 'items' is read as a set, which has none; all",
    ),
    (
        {"inputs": {"text": {}}, "encoder": {"kind": "transformer", "positions": "none"}, "attention": "location"},
        "attention.score: location goes by where a place lies, and 'text' is read as a set",
    ),
    (
        {**SET, "attention": {"through": "sentences"}},
        "attention.through: 'items' has no places inside larger ones",
    ),
    (
        {**SET, "inputs": {"items": {"kind": "set", "max_length": 9}}},
        "inputs.items.max_length: 9 would cut a set by the order it was written in; allowed: 0",
    ),
    (
        {**SET, "inputs": {"items": {"kind": "set", "tokens": "bpe"}}},
        "inputs.items.tokens: 'bpe' is not allowed; allowed: symbol, word, character",
    ),
    (
        {**SET, "inputs": {"items": {"kind": "set", "tokens": "word", "separator": ";"}}},
        "inputs.items.tokens: has no effect here: separator tells elements apart",
    ),
    (
        {**MARKED, "output": {"tokens": "symbol", "share": "items"}},
        "output.share: the separator is not given here and ';' in items: must be the same",
    ),
    (
        {**MARKED, "output": {"tokens": "symbol"}, "decoder": {"copy_from": "items"}},
        "decoder.copy_from: elements of items stand between ';', symbols of the output do not; allowed: none",
    ),
    (
        {**SET, "encoder": {"kind": "deep-sets", "pooling": "max"}},
        "encoder.pooling: has no effect here: no summary is used",
    ),
    (
        {**SET, "encoder": {"kind": "deep-sets", "summary_layers": 3}},
        "encoder.summary_layers: has no effect here: no summary is used",
    ),
    (
        {**SET, "encoder": {"kind": "deep-sets", "positions": "none"}},
        "encoder.positions: unknown key",
    ),
]


@pytest.mark.parametrize(("raw", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_what_cannot_work_is_named(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        load_recipe(raw)
    assert message in str(raised.value)


def test_a_transformer_reads_a_set_without_positions() -> None:
    made = load_recipe(LOOKING)
    assert made.encoder.kind == "transformer"
    assert made.encoder.positions == "none"
    assert made.view_of("items") == (256, "set")
    assert load_recipe(made.to_dict()) == made


def test_a_text_beside_a_set_keeps_its_positions() -> None:
    made = load_recipe({"inputs": BOTH, "encoder": {"kind": "transformer", "size": 64}})
    assert made.view_of("items") == (64, "set")
    assert made.view_of("question") == (64, "tokens")
    assert load_recipe(made.to_dict()) == made
    with pytest.raises(UserError, match=r"encoder\.positions: sinusoidal would give the elements of 'items' an order"):
        load_recipe({"inputs": BOTH, "encoder": {"kind": "transformer", "positions": "sinusoidal"}})


def test_there_is_a_rho_where_the_summary_is_used() -> None:
    def layers(**rooms: Any) -> int | None:
        made = load_recipe({**SET, **rooms})
        assert made.encoder.kind == "deep-sets"
        assert load_recipe(made.to_dict()) == made
        return made.encoder.summary_layers

    assert layers() == 0
    assert layers(attention="none") == 2
    assert layers(decoder={"every_step": "items"}) == 2
    assert layers(decoder={"start": "items"}, encoder={"kind": "deep-sets", "summary_layers": 0}) == 0


def test_coverage_that_sees_a_place_alone_knows_no_order() -> None:
    made = load_recipe({**SET, "attention": {"score": "coverage", "kernel": 1}})
    assert made.attention.kernel == 1


def test_a_set_can_be_copied_from_and_shared() -> None:
    raw = {**SET, "output": {"tokens": "symbol", "share": "items"}, "decoder": {"copy_from": "items"}}
    assert load_recipe(raw).copied_from == "items"


def test_what_an_override_makes_meaningless_goes_with_it() -> None:
    made = load_recipe("set-to-sequence", overrides=["decoder.start=none"])
    assert made.encoder.kind == "deep-sets"
    assert made.encoder.summary_layers == 0
    other = load_recipe("set-to-sequence", overrides=["encoder.kind=transformer"])
    assert other.encoder.kind == "transformer"
    assert other.encoder.positions == "none"


def test_a_score_of_ones_own_that_goes_by_order_is_refused_too() -> None:
    class Sloped(Score):
        ordered = True

        def energies(self, query, keys): ...

    scores.register("sloped")(Sloped)
    try:
        with pytest.raises(UserError, match=r"attention\.score: sloped goes by where a place lies"):
            load_recipe({**SET, "attention": "sloped"})
    finally:
        scores.remove("sloped")
