"""Recipes of Transformers: what is filled in, what is refused, and what an override drops."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.recipe import load_recipe
from tests.recipe.refusing import ONE, Refused, problems_of

BOTH: dict[str, Any] = {
    **ONE,
    "encoder": {"kind": "transformer", "size": 64},
    "decoder": {"kind": "transformer", "size": 64},
}


REFUSED = [
    Refused(BOTH, {"decoder.cell": "other-kind"}, "decoder.kind recurrent", overrides=["decoder.cell=lstm"]),
    Refused(BOTH, {"decoder.reset": "other-kind"}, "decoder.kind recurrent", overrides=["decoder.reset=before"]),
    Refused(BOTH, {"decoder.output": "other-kind"}, "decoder.kind label", overrides=["decoder.output=state"]),
    Refused(BOTH, {"attention.query": "attention-settings"}, "transformer", overrides=["attention.query=current"]),
    Refused(BOTH, {"decoder.longest": "no-effect"}, "sinusoidal", overrides=["decoder.longest=9"]),
    Refused(BOTH, {"encoder.longest": "no-effect"}, "sinusoidal", overrides=["encoder.longest=9"]),
    Refused(BOTH, {"decoder.heads": "heads"}, "5 64", overrides=["decoder.heads=5"]),
    Refused(BOTH, {"encoder.heads": "heads"}, "7 64", overrides=["encoder.heads=7"]),
    Refused(
        BOTH, {"inputs.source.max_length": "learned-positions"}, "learned", overrides=["encoder.positions=learned"]
    ),
    Refused(BOTH, {"output.max_length": "learned-positions"}, "learned", overrides=["decoder.positions=learned"]),
    Refused(BOTH, {"encoder.cell": "unknown-key"}, overrides=["encoder.cell=gru"]),
    Refused(BOTH, {"decoder.memory": "value"}, "0", overrides=["decoder.memory=0"]),
    Refused(BOTH, {"encoder.positions": "heads"}, "rotary", overrides=["encoder.positions=rotary", "encoder.heads=64"]),
    Refused(ONE, {"decoder.heads": "other-kind"}, "decoder.kind transformer", overrides=["decoder.heads=2"]),
    Refused(
        {**ONE, "output": {"kind": "label"}},
        {"decoder.positions": "other-kind"},
        "decoder.kind transformer",
        overrides=["decoder.positions=none"],
    ),
    Refused(
        "autoencoder", {"decoder.kind": "decoder-kind"}, "transformer vector", overrides=["decoder.kind=transformer"]
    ),
    Refused(
        BOTH,
        {"decoder.memory": "memory"},
        "9 source attention decoder.every_step null",
        overrides=["attention=none", "decoder.memory=9"],
    ),
]

LEARNED = ["encoder.positions=learned", "decoder.positions=learned", "decoder.longest=50"]
LENGTHS = ["inputs.source.max_length=512", "output.max_length=49", "search.max_length=50"]
REFUSED_POSITIONS = [
    Refused(
        BOTH,
        {"output.max_length": "learned-positions"},
        "50 learned",
        overrides=[*LEARNED, *LENGTHS, "output.max_length=50"],
    ),
    Refused(
        BOTH,
        {"search.max_length": "search-positions"},
        "51 decoder.longest 50",
        overrides=[*LEARNED, *LENGTHS, "search.max_length=51"],
    ),
    *(
        Refused(
            BOTH,
            {f"{side}.longest": "learned-positions"},
            str(allowed),
            overrides=[f"{side}.positions=learned", f"{side}.longest={longest}"],
        )
        for side, longest, allowed in [("decoder", 0, 2), ("decoder", 1, 2), ("encoder", 0, 1)]
    ),
]


@pytest.mark.parametrize("case", [*REFUSED, *REFUSED_POSITIONS], ids=str)
def test_refused_recipes_of_transformers(case: Refused) -> None:
    case.check()


def test_learned_positions_reach_as_far_as_the_texts() -> None:
    assert load_recipe(BOTH, overrides=[*LEARNED, *LENGTHS]).decoder.longest == 50


def test_an_override_of_the_kind_drops_the_settings_of_the_other() -> None:
    recipe = load_recipe("translation", overrides=["encoder.kind=transformer", "decoder.kind=transformer"])
    assert (recipe.encoder.kind, recipe.decoder.kind) == ("transformer", "transformer")
    assert "cell" not in type(recipe.decoder).model_fields
    assert recipe.encoder.size == 256
    back = load_recipe("translation-transformer", overrides=["decoder.kind=recurrent"])
    assert "heads" not in type(back.decoder).model_fields


STREAM: dict[str, Any] = {"output": {}, "data": {"stream": True}, "decoder": {"kind": "transformer"}}
REFUSED_STREAMS = [
    *(
        Refused(
            STREAM,
            {"decoder.positions": "stream-positions"},
            f"{positions} stream rotary none",
            overrides=[f"decoder.positions={positions}"],
        )
        for positions in ("sinusoidal", "learned")
    ),
    Refused(
        "language-model",
        {"decoder.positions": "stream-positions"},
        "sinusoidal",
        overrides=["decoder.kind=transformer", "decoder.positions=sinusoidal"],
    ),
    Refused(
        {**STREAM, "data": {}, "decoder": {**STREAM["decoder"], "positions": "learned"}},
        {"decoder.positions": "stream-positions"},
        "learned",
        overrides=["data.stream=true"],
    ),
]


@pytest.mark.parametrize("case", REFUSED_STREAMS, ids=str)
def test_refused_positions_in_streams(case: Refused) -> None:
    case.check()


def test_positions_and_memory_that_a_stream_gets() -> None:
    recipe = load_recipe(STREAM)
    assert (recipe.decoder.positions, recipe.decoder.memory) == ("rotary", 256)
    assert load_recipe(recipe.to_dict(), complete=True) == recipe
    assert load_recipe(STREAM, overrides=["decoder.memory=40", "decoder.positions=none"]).decoder.memory == 40
    rows = load_recipe({"output": {}, "decoder": {"kind": "transformer"}})
    assert (rows.attention.score, rows.decoder.positions, rows.decoder.memory) == ("none", "sinusoidal", None)
    back = load_recipe(recipe.to_dict(), overrides=["decoder.kind=recurrent"])
    assert back.decoder == load_recipe({**STREAM, "decoder": {}}).decoder


def test_resolved_defaults_follow_an_override() -> None:
    plain, stream = load_recipe("language-model"), ["data.stream=true"]
    for source in ("language-model", plain, plain.to_dict()):
        recipe = load_recipe(source, overrides=["decoder.kind=transformer"])
        assert (recipe.decoder.positions, recipe.decoder.memory) == ("rotary", 256)
    for source in (recipe, recipe.to_dict()):
        back = load_recipe(source, overrides=["data.stream=false"])
        assert (back.decoder.positions, back.decoder.memory) == ("sinusoidal", None)
        assert load_recipe(source, overrides=["decoder.kind=recurrent"]).decoder.kind == "recurrent"
    again = load_recipe(load_recipe(recipe, overrides=["data.stream=false"]), overrides=stream)
    assert again.decoder == recipe.decoder


def test_explicit_settings_stay_after_an_override() -> None:
    explicit = load_recipe(
        STREAM, overrides=["decoder.memory=40", "decoder.positions=none", "decoder.heads=2"]
    ).to_dict()
    rows = load_recipe(explicit, overrides=["data.stream=false"]).decoder
    assert (rows.memory, rows.positions, rows.heads) == (40, "none", 2)
    near = load_recipe(load_recipe(STREAM), overrides=["data.stream=false", "decoder.memory=256"]).decoder
    assert (near.memory, near.positions) == (256, "sinusoidal")
    resolved = load_recipe("language-model")
    assert problems_of(resolved, "decoder.kind=transformer", "decoder.positions=sinusoidal") == [
        ("decoder.positions", "stream-positions")
    ]


def test_a_memory_is_allowed_with_attention_or_every_step() -> None:
    for changes in (["decoder.start=source"], ["attention=none", "decoder.every_step=source"]):
        assert load_recipe(BOTH, overrides=[*changes, "decoder.memory=9"]).decoder.memory == 9
    assert load_recipe(BOTH, overrides=["attention=none", "decoder.memory=null"]).decoder.start == ["source"]


LABEL: dict[str, Any] = {**ONE, "output": {"kind": "label"}, "decoder": {"kind": "transformer"}}


REFUSED_LABELS = [
    Refused(LABEL, {"decoder.heads": "no-effect"}, "label", overrides=["decoder.heads=2"]),
    Refused(LABEL, {"decoder.memory": "no-effect"}, "label", overrides=["decoder.memory=9"]),
    Refused(LABEL, {"decoder.positions": "no-effect"}, "label", overrides=["decoder.positions=rotary"]),
    Refused(LABEL, {"decoder.embedding": "no-effect"}, "label", overrides=["decoder.embedding.size=9"]),
    Refused(LABEL, {"decoder.every_step": "no-effect"}, "step", overrides=["decoder.every_step=source"]),
    Refused(LABEL, {"decoder.cell": "other-kind"}, "decoder.kind recurrent", overrides=["decoder.cell=lstm"]),
    Refused(LABEL, {"decoder.output": "other-kind"}, "decoder.kind label", overrides=["decoder.output=state"]),
    Refused(LABEL, {"attention.query": "attention-settings"}, "label", overrides=["attention.query=current"]),
]


@pytest.mark.parametrize("case", REFUSED_LABELS, ids=str)
def test_refused_labels_of_transformers(case: Refused) -> None:
    case.check()


def test_a_label_is_decoded_by_layers_of_a_transformer() -> None:
    recipe = load_recipe(LABEL, overrides=["decoder.layers=2", "decoder.feedforward=64"])
    assert recipe.decoder.kind == "transformer"


def test_without_attention_the_decoder_starts_from_the_summary() -> None:
    assert load_recipe(BOTH, overrides=["attention=none"]).decoder.start == ["source"]
