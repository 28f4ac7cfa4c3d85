"""Recipes of sets: what is filled in, what is refused, and what an override drops."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.attention import Score, scores
from seq2see.recipe import load_recipe
from tests.recipe.refusing import Refused, problems_of

SET: dict[str, Any] = {"inputs": {"items": {"kind": "set"}}, "encoder": {"kind": "deep-sets"}}
TRANSFORMER: dict[str, Any] = {"inputs": {"items": {"kind": "set"}}, "encoder": {"kind": "transformer"}}
MARKED: dict[str, Any] = {**SET, "inputs": {"items": {"kind": "set", "separator": ";"}}}
BOTH = {"items": {"kind": "set"}, "question": {}}

REFUSED = [
    Refused(
        {"inputs": {"items": {"kind": "set"}}}, {"encoder.kind": "readers"}, "recurrent items set deep-sets transformer"
    ),
    Refused(
        {**SET, "inputs": {"items": {"kind": "set", "encoder": {"kind": "hierarchical"}}}},
        {"inputs.items.encoder.kind": "readers"},
        "hierarchical items set deep-sets",
    ),
    Refused(
        {**SET, "inputs": {"doc": {"kind": "texts"}}}, {"encoder.kind": "readers"}, "deep-sets doc texts hierarchical"
    ),
    Refused(
        {**TRANSFORMER, "encoder": {"kind": "transformer", "positions": "learned"}},
        {"encoder.positions": "set-positions", "inputs.items.max_length": "learned-positions"},
        "learned items set none",
    ),
    Refused(
        {**SET, "attention": {"score": "location"}},
        {"attention.score": "set-score"},
        "location items set dot scaled-dot",
    ),
    Refused(
        {**SET, "attention": {"score": "coverage"}},
        {"attention.score": "set-score"},
        "deep static uniform none attention.kernel 1",
    ),
    Refused(
        {**SET, "attention": {"scope": "local-predicted"}},
        {"attention.scope": "scope"},
        "local-predicted items set global",
    ),
    Refused(
        {"inputs": {"text": {}}, "encoder": {"kind": "transformer", "positions": "none"}, "attention": "location"},
        {"attention.score": "set-score"},
        "location text set",
    ),
    Refused({**SET, "attention": {"through": "sentences"}}, {"attention.through": "through"}, "items"),
    Refused(
        {**SET, "inputs": {"items": {"kind": "set", "max_length": 9}}},
        {"inputs.items.max_length": "set-length"},
        "9 set 0",
    ),
    Refused(
        {**SET, "inputs": {"items": {"kind": "set", "tokens": "bpe"}}},
        {"inputs.items.tokens": "value"},
        "bpe symbol word character",
    ),
    Refused(
        {**SET, "inputs": {"items": {"kind": "set", "tokens": "word", "separator": ";"}}},
        {"inputs.items.tokens": "no-effect"},
        "separator",
    ),
    Refused(
        {**MARKED, "output": {"tokens": "symbol", "share": "items"}}, {"output.share": "share"}, "separator ';' items"
    ),
    Refused(
        {**MARKED, "output": {"tokens": "symbol"}, "decoder": {"copy_from": "items"}},
        {"decoder.copy_from": "copying"},
        "items ';' none",
    ),
    Refused({**SET, "encoder": {"kind": "deep-sets", "pooling": "max"}}, {"encoder.pooling": "no-effect"}, "summary"),
    Refused(
        {**SET, "encoder": {"kind": "deep-sets", "summary_layers": 3}},
        {"encoder.summary_layers": "no-effect"},
        "summary",
    ),
    Refused({**SET, "encoder": {"kind": "deep-sets", "positions": "none"}}, {"encoder.positions": "unknown-key"}),
    Refused(
        {"inputs": BOTH, "encoder": {"kind": "transformer", "positions": "sinusoidal"}},
        {"encoder.positions": "set-positions"},
        "sinusoidal items none",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_recipes_of_sets(case: Refused) -> None:
    case.check()


def test_a_transformer_reads_a_set_without_positions() -> None:
    recipe = load_recipe(TRANSFORMER)
    assert recipe.encoder.kind == "transformer"
    assert recipe.encoder.positions == "none"
    assert recipe.view_of("items") == (256, "set")
    assert load_recipe(recipe.to_dict()) == recipe


def test_a_text_beside_a_set_keeps_its_positions() -> None:
    recipe = load_recipe({"inputs": BOTH, "encoder": {"kind": "transformer", "size": 64}})
    assert recipe.view_of("items") == (64, "set")
    assert recipe.view_of("question") == (64, "tokens")
    assert load_recipe(recipe.to_dict()) == recipe


def test_the_network_of_the_summary_is_built_where_the_summary_is_used() -> None:
    def layers(**changes: Any) -> int | None:
        recipe = load_recipe({**SET, **changes})
        assert recipe.encoder.kind == "deep-sets"
        assert load_recipe(recipe.to_dict()) == recipe
        return recipe.encoder.summary_layers

    assert layers() == 0
    assert layers(attention="none") == 2
    assert layers(decoder={"every_step": "items"}) == 2
    assert layers(decoder={"start": "items"}, encoder={"kind": "deep-sets", "summary_layers": 0}) == 0


def test_coverage_of_single_places_is_allowed_for_sets() -> None:
    recipe = load_recipe({**SET, "attention": {"score": "coverage", "kernel": 1}})
    assert recipe.attention.kernel == 1


def test_a_set_can_be_copied_from_and_shared() -> None:
    raw = {**SET, "output": {"tokens": "symbol", "share": "items"}, "decoder": {"copy_from": "items"}}
    assert load_recipe(raw).copied_from == "items"


def test_an_override_drops_what_it_makes_meaningless() -> None:
    recipe = load_recipe("set-to-sequence", overrides=["decoder.start=none"])
    assert recipe.encoder.kind == "deep-sets"
    assert recipe.encoder.summary_layers == 0
    other = load_recipe("set-to-sequence", overrides=["encoder.kind=transformer"])
    assert other.encoder.kind == "transformer"
    assert other.encoder.positions == "none"


def test_a_plug_in_score_that_depends_on_order_is_refused_too() -> None:
    class Sloped(Score):
        ordered = True

        def energies(self, query, keys): ...

    scores.register("sloped")(Sloped)
    try:
        assert problems_of({**SET, "attention": "sloped"}) == [("attention.score", "set-score")]
    finally:
        scores.remove("sloped")
