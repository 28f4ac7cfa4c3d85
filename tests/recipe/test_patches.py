"""Places of a Transformer that reads images or sounds: patches of pixels and stacks of frames."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.encoders.transformer import TransformerEncoderSettings
from seq2see.recipe import load_recipe
from tests.recipe.refusing import Refused


def with_transformer(kind: str = "image", column: dict[str, Any] | None = None, **encoder: Any) -> dict[str, Any]:
    return {"inputs": {"x": {"kind": kind, **(column or {})}}, "encoder": {"kind": "transformer", **encoder}}


@pytest.mark.parametrize(
    ("column", "patch", "pixels"),
    [
        ({}, 16, (16, 16)),
        ({"height": 28, "width": 28}, 4, (4, 4)),
        ({"height": 64, "width": 200}, 8, (8, 8)),
        ({"height": 5, "width": 5}, 1, (1, 1)),
        ({"height": 48, "width": 0}, (48, 6), (48, 6)),
    ],
)
def test_patches_fit_the_image(column: dict[str, Any], patch: Any, pixels: tuple[int, int]) -> None:
    recipe = load_recipe(with_transformer(column=column))
    settings = recipe.encoder_of("x")
    assert isinstance(settings, TransformerEncoderSettings)
    assert (settings.patch, settings.stack, settings.pixels) == (patch, None, pixels)
    assert recipe.view_of("x") == (settings.size, "grid")
    assert load_recipe(recipe.to_dict(), complete=True) == recipe


def test_frames_are_stacked_by_four() -> None:
    recipe = load_recipe(with_transformer("sound"))
    assert recipe.view_of("x") == (256, "frames")
    assert recipe.encoder_of("x").stack == 4  # type: ignore[union-attr]
    assert load_recipe(with_transformer("sound", stack=3)).encoder_of("x").stack == 3  # type: ignore[union-attr]


def test_inputs_that_share_an_encoder_have_patches_or_stacks_of_their_own() -> None:
    raw = {
        "inputs": {"heard": {"kind": "sound"}, "seen": {"kind": "image"}, "small": {"kind": "image", "height": 32}},
        "encoder": {"kind": "transformer", "layers": 2},
    }
    recipe = load_recipe(raw)
    encoders = [recipe.encoder_of(name) for name in recipe.inputs]
    assert [(encoder.stack, encoder.patch, encoder.layers) for encoder in encoders] == [  # type: ignore[union-attr]
        (4, None, 2),
        (None, 16, 2),
        (None, 4, 2),
    ]
    assert load_recipe(recipe.to_dict(), complete=True) == recipe


def test_an_image_beside_a_text_has_its_usual_encoder_unless_another_is_named() -> None:
    raw: dict[str, Any] = {"inputs": {"q": {}, "x": {"kind": "image"}}, "encoder": {"kind": "transformer"}}
    assert load_recipe(raw).encoder_of("x").kind == "convolutional"
    assert load_recipe(raw).encoder_of("q").kind == "transformer"
    changed = load_recipe(raw, overrides=["inputs.x.encoder.kind=transformer", "encoder.size=64"])
    assert (changed.encoder_of("x").patch, changed.encoder_of("x").size) == (16, 64)  # type: ignore[union-attr]
    assert changed.encoder_of("q").patch is None  # type: ignore[union-attr]


REFUSED = [
    Refused(with_transformer(positions="rotary"), {"encoder.positions": "patches"}, "rotary"),
    Refused(with_transformer(patch=300), {"encoder.patch": "patches"}, "300 224"),
    Refused(with_transformer(patch=224), {"encoder.patch": "patches"}, "224"),
    Refused(
        with_transformer(column={"height": 20, "width": 0}, patch=[30, 4]), {"encoder.patch": "patches"}, "30 4 20"
    ),
    Refused(with_transformer(patch=0), {"encoder.patch": "type"}, "whole 0"),
    Refused(with_transformer(patch=[4]), {"encoder.patch": "type"}, "whole 2 [4]"),
    Refused(with_transformer(patch="big"), {"encoder.patch": "type"}, "whole big"),
    Refused(with_transformer("sound", stack=0), {"encoder.stack": "value"}, "0"),
    Refused(with_transformer("sound", heads=3), {"encoder.heads": "heads"}, "3 256"),
    Refused(
        with_transformer("sound", positions="learned"),
        {"encoder.longest": "learned-positions"},
        "512 30 seconds inputs.x.longest 750",
    ),
    Refused(
        with_transformer(positions="learned", longest=5),
        {"encoder.longest": "learned-positions"},
        "5 224 inputs.x.width 14",
    ),
    Refused(
        with_transformer(column={"height": 16, "width": 0}, positions="learned"),
        {"encoder.longest": "learned-positions"},
        "learned inputs.x.widest",
    ),
    Refused(with_transformer("vector"), {"encoder.kind": "encoder-kind"}, "transformer x vector"),
    Refused(with_transformer("video"), {"encoder.kind": "readers"}, "video encoder.over_time transformer"),
    Refused(with_transformer("sound", patch=4), {"encoder.patch": "no-effect"}, "x picture"),
    Refused(with_transformer(stack=4), {"encoder.stack": "no-effect"}, "x sound"),
    Refused(with_transformer("text", stack=4), {"encoder.stack": "no-effect"}, "sound"),
    Refused(with_transformer("text", patch=4), {"encoder.patch": "no-effect"}, "picture"),
    Refused(with_transformer(embedding={"size": 9}), {"encoder.embedding": "no-effect"}, "x symbol"),
    Refused(with_transformer("sound", longest=9), {"encoder.longest": "no-effect"}, "sinusoidal"),
    Refused(
        with_transformer(column={"height": 20, "width": 0, "fit": "pad"}), {"inputs.x.fit": "no-effect"}, "width 0"
    ),
    Refused(with_transformer(column={"widest": 90}), {"inputs.x.widest": "no-effect"}, "224"),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_patches_and_stacks(case: Refused) -> None:
    case.check()


def test_another_input_or_encoder_drops_patches_and_stacks() -> None:
    recipe = load_recipe(with_transformer("sound"))
    assert load_recipe(recipe, overrides=["encoder.kind=pyramidal"]).encoder.kind == "pyramidal"
    changed = load_recipe(with_transformer("sound", stack=3), overrides=["inputs.x.kind=image"])
    assert (changed.encoder.stack, changed.encoder.patch) == (None, 16)  # type: ignore[union-attr]
