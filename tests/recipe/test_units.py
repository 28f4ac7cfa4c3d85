"""What a Transformer's places are made of: filled in where nothing is said, refused where it cannot be or is idle."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.encoders.transformer_layers import TransformerEncoderSettings
from seq2see.encoders.video import VideoEncoderSettings
from seq2see.errors import UserError
from seq2see.recipe import load_recipe, shipped


def recipe(kind: str = "image", given: dict[str, Any] | None = None, **encoder: Any) -> dict[str, Any]:
    return {"inputs": {"x": {"kind": kind, **(given or {})}}, "encoder": {"kind": "transformer", **encoder}}


@pytest.mark.parametrize(
    ("given", "patch", "pixels"),
    [
        ({}, 16, (16, 16)),
        ({"height": 28, "width": 28}, 4, (4, 4)),
        ({"height": 64, "width": 200}, 8, (8, 8)),
        ({"height": 5, "width": 5}, 1, (1, 1)),
        ({"height": 48, "width": 0}, (48, 6), (48, 6)),
    ],
)
def test_patches_fit_the_picture(given: dict[str, Any], patch: Any, pixels: tuple[int, int]) -> None:
    made = load_recipe(recipe(given=given))
    settings = made.encoder_of("x")
    assert isinstance(settings, TransformerEncoderSettings)
    assert (settings.patch, settings.stack, settings.pixels) == (patch, None, pixels)
    assert made.view_of("x") == (settings.size, "grid")
    assert load_recipe(made.to_dict(), complete=True) == made


def test_frames_are_joined_by_fours() -> None:
    made = load_recipe(recipe("sound"))
    assert made.view_of("x") == (256, "frames")
    assert made.encoder_of("x").stack == 4  # type: ignore[union-attr]
    assert load_recipe(recipe("sound", stack=3)).encoder_of("x").stack == 3  # type: ignore[union-attr]


def test_inputs_that_share_an_encoder_have_their_own_places() -> None:
    given = {
        "inputs": {"heard": {"kind": "sound"}, "seen": {"kind": "image"}, "small": {"kind": "image", "height": 32}},
        "encoder": {"kind": "transformer", "layers": 2},
    }
    made = load_recipe(given)
    told = {name: made.encoder_of(name) for name in made.inputs}
    assert [(one.stack, one.patch, one.layers) for one in told.values()] == [  # type: ignore[union-attr]
        (4, None, 2),
        (None, 16, 2),
        (None, 4, 2),
    ]
    assert load_recipe(made.to_dict(), complete=True) == made


def test_a_file_beside_a_text_is_read_as_usual_unless_it_is_said() -> None:
    given: dict[str, Any] = {"inputs": {"q": {}, "x": {"kind": "image"}}, "encoder": {"kind": "transformer"}}
    assert load_recipe(given).encoder_of("x").kind == "convolutional"
    assert load_recipe(given).encoder_of("q").kind == "transformer"
    said = load_recipe(given, overrides=["inputs.x.encoder.kind=transformer", "encoder.size=64"])
    assert (said.encoder_of("x").patch, said.encoder_of("x").size) == (16, 64)  # type: ignore[union-attr]
    assert said.encoder_of("q").patch is None  # type: ignore[union-attr]


WRONG: list[tuple[dict[str, Any], str]] = [
    (recipe(positions="rotary"), r"encoder\.positions: rotary goes by distances in a line"),
    (recipe(patch=300), r"encoder\.patch: 300 x 300 pixels leave no two places in a picture of 224 x 224"),
    (recipe(patch=224), r"encoder\.patch: 224 x 224 pixels leave no two places"),
    (recipe(given={"height": 20, "width": 0}, patch=[30, 4]), r"encoder\.patch: 30 x 4 pixels .* a picture of 20;"),
    (recipe(patch=0), r"encoder\.patch"),
    (recipe(patch=[4]), r"encoder\.patch: should be whole number above 0.* or list of 2 whole numbers"),
    (recipe(patch="big"), r"encoder\.patch"),
    (recipe("sound", stack=0), r"encoder\.stack"),
    (recipe("sound", heads=3), r"encoder\.heads: 3 heads cannot share 256 numbers"),
    (recipe("sound", positions="learned"), r"encoder\.longest: 512 .*\(inputs\.x\.longest\) are 750 places"),
    (recipe(positions="learned", longest=5), r"encoder\.longest: 5 .* 224 pixels \(inputs\.x\.width\) are 14 places"),
    (
        recipe(given={"height": 16, "width": 0}, positions="learned"),
        r"encoder\.longest: learned positions end, and lines of 'x' do not; allowed: a limit \(inputs\.x\.widest\)",
    ),
    (recipe("vector"), r"transformer does not read 'x', an input of kind vector"),
    (recipe("video"), r"allowed: video with encoder\.over_time transformer"),
    (recipe("sound", patch=4), r"encoder\.patch: has no effect here: x: no picture is read"),
    (recipe(stack=4), r"encoder\.stack: has no effect here: x: no sound is read"),
    (recipe("text", stack=4), r"encoder\.stack: has no effect here"),
    (recipe("text", patch=4), r"encoder\.patch: has no effect here"),
    (recipe(embedding={"size": 9}), r"encoder\.embedding: has no effect here: x: no symbol is read"),
    (recipe("sound", longest=9), r"encoder\.longest: has no effect here"),
    (recipe(given={"height": 20, "width": 0, "fit": "pad"}), r"inputs\.x\.fit: has no effect here"),
    (recipe(given={"widest": 90}), r"inputs\.x\.widest: has no effect here"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_what_cannot_work_or_does_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(given)


def test_another_input_or_encoder_drops_what_is_said_of_places() -> None:
    made = load_recipe(recipe("sound"))
    assert load_recipe(made, overrides=["encoder.kind=pyramidal"]).encoder.kind == "pyramidal"
    changed = load_recipe(recipe("sound", stack=3), overrides=["inputs.x.kind=image"])
    assert (changed.encoder.stack, changed.encoder.patch) == (None, 16)  # type: ignore[union-attr]


def watched(**encoder: Any) -> dict[str, Any]:
    return {"inputs": {"x": {"kind": "video"}}, "encoder": {"kind": "video", **encoder}}


@pytest.mark.parametrize(("recurrent", "over_time"), [(True, "recurrent"), (False, "none")])
def test_recipes_of_before_say_recurrent(recurrent: bool, over_time: str) -> None:
    settings = load_recipe(watched(recurrent=recurrent)).encoder
    assert isinstance(settings, VideoEncoderSettings)
    assert (settings.over_time, settings.recurrent) == (over_time, recurrent)
    assert load_recipe(watched(), overrides=[f"encoder.recurrent={recurrent}"]).encoder == settings


OVER_TIME: list[tuple[dict[str, Any], str]] = [
    (watched(over_time="none", heads=2), r"encoder\.heads: has no effect here: only encoder\.over_time"),
    (watched(heads=2), r"encoder\.heads: has no effect here: only encoder\.over_time"),
    (watched(over_time="transformer", cell="lstm"), r"encoder\.cell: has no effect here: only encoder\.over_time"),
    (watched(over_time="none", layers=2), r"encoder\.layers: has no effect here: only encoder\.over_time"),
    (watched(over_time="transformer", longest=9), r"encoder\.longest: has no effect here"),
    (watched(over_time="transformer", heads=3), r"encoder\.heads: 3 heads cannot share 256 numbers"),
    (watched(over_time="transformer", positions="learned", longest=9), r"encoder\.longest: 9 .*inputs\.x\.most is 256"),
    (watched(over_time="both"), r"encoder\.over_time: 'both' is not allowed; allowed: recurrent, transformer, none"),
    (watched(over_time="none", recurrent=True), r"encoder\.recurrent: unknown key"),
    (
        watched(over_time="transformer", positions="none") | {"output": {"kind": "label", "made": "direction"}},
        r"encoder\.over_time: transformer without positions, and no level of motion sees",
    ),
]


@pytest.mark.parametrize(("given", "said"), OVER_TIME)
def test_what_does_not_fit_over_time_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(given)


@pytest.mark.parametrize("name", [name for name in shipped() if load_recipe(name).videos])
def test_videos_are_read_by_a_transformer_over_time(name: str) -> None:
    made = load_recipe(name, overrides=["encoder.over_time=transformer"])
    assert made.view_of("video") == (made.encoder.places_size, "frames")
    assert made.encoder.places_size == made.encoder.size
