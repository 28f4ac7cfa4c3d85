"""Recipes with videos: what is filled in, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.encoders.video import VideoEncoder, VideoEncoderSettings
from seq2see.recipe import load_recipe, shipped
from tests.recipe.refusing import Refused


def with_video(
    video: dict[str, Any] | None = None, encoder: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {"inputs": {"video": {"kind": "video", "encoder": encoder or {}, **(video or {})}}, **more}


def test_the_usual_encoder_of_a_video() -> None:
    recipe = load_recipe({"inputs": {"video": {"kind": "video"}}, "loss": {"ctc": 0.3}})
    settings = recipe.encoder_of("video")
    assert isinstance(settings, VideoEncoderSettings)
    assert recipe.view_of("video") == (settings.places_size, "frames")
    assert recipe.read_along == "video"


def test_regions_are_looked_at_beside_or_instead_of_frames() -> None:
    for over in ("video.regions", ["video", "video.regions"]):
        recipe = load_recipe(with_video(encoder={"regions": True}, attention={"over": over}))
        assert recipe.view_of("video.regions")[1] == "frames-grid"


REFUSED = [
    Refused(with_video({"start": 2, "end": 1}), {"inputs.video.end": "video-part"}, "1 2"),
    Refused(with_video({"region": [0.5, 0, 0.5, 1]}), {"inputs.video.region": "video-part"}, "0.5"),
    Refused(with_video({"region": [0, 0, 2, 1]}), {"inputs.video.region.2": "value"}, "1 2"),
    Refused(with_video({"height": 2}), {"inputs.video.height": "image-size"}, "2 112 4"),
    Refused(with_video({"every": 0}), {"inputs.video.every": "value"}, "0"),
    Refused(
        with_video(encoder={"appearance": False}), {"inputs.video.encoder.appearance": "motion"}, "false motion true"
    ),
    Refused(with_video(encoder={"motion": [4], "spans": [3, 3]}), {"inputs.video.encoder.spans": "motion"}, "2 1"),
    Refused(
        with_video(encoder={"motion": [4], "spans": [2]}), {"inputs.video.encoder.spans": "motion"}, "[2] odd 1 3 5"
    ),
    Refused(
        with_video(encoder={"backbone": "resnet-50"}),
        {"inputs.video.encoder.backbone": "backbone"},
        "resnet-50 resnet50",
    ),
    Refused(
        with_video({"height": 224, "width": 224}, {"backbone": "efficientnet-lite0"}),
        {"inputs.video.frames": "backbone"},
        "0 inputs.video.encoder.tuned",
    ),
    Refused(
        with_video(encoder={"regions": True}, attention={"over": "video.regions", "scope": "local-monotonic"}),
        {"attention.scope": "scope"},
        "local-monotonic grid",
    ),
    Refused(
        with_video(encoder={"regions": True}, attention={"over": "video.regions"}, loss={"ctc": 0.3}),
        {"loss.ctc": "ctc"},
        "video.regions frames-grid",
    ),
]

SMALL = {"height": 64, "width": 64}
REFUSED_LEVELS = [
    Refused(with_video(SMALL, {"channels": [4] * 8}), {"inputs.video.encoder.channels": "shrinking"}, "7 8 64 video 6"),
    Refused(with_video(SMALL, {"motion": [16] * 5 + [8]}), {"inputs.video.encoder.motion": "shrinking"}, "6 5"),
    Refused(
        with_video({"frames": 1}, {"motion": [4], "motion_from": "changes"}), {"inputs.video.frames": "motion"}, "1 2"
    ),
    Refused(
        with_video(attention={"over": "video.regions"}),
        {"attention.over": "places"},
        "inputs.video.encoder.regions true video.regions",
    ),
]

DIRECTION = {"kind": "label", "made": "direction"}
REFUSED_DIRECTIONS = [
    Refused(
        {"inputs": {"source": {"kind": "text"}}, "output": DIRECTION},
        {"output.made": "direction"},
        "direction video text",
    ),
    Refused({"output": DIRECTION}, {"inputs": "missing-input", "output.made": "direction"}, "direction video none"),
    Refused(with_video(output={"kind": "label", "made": "speed"}), {"output.made": "value"}, "speed direction"),
    Refused(with_video(output={"kind": "text", "made": "direction"}), {"output.made": "unknown-key"}),
    Refused(with_video({"frames": 1}, output=DIRECTION), {"inputs.video.frames": "direction"}, "1 2"),
    Refused(with_video({"most": 1}, output=DIRECTION), {"inputs.video.most": "direction"}, "1 2"),
    Refused(with_video({"rate": 5}, output=DIRECTION), {"inputs.video.rate": "direction"}, "5 0"),
    Refused(
        with_video(encoder={"over_time": "none"}, output=DIRECTION),
        {"inputs.video.encoder.over_time": "direction"},
        "none motion",
    ),
    Refused(
        with_video(encoder={"over_time": "none", "motion": [4], "spans": [1]}, output=DIRECTION),
        {"inputs.video.encoder.over_time": "direction"},
        "none motion",
    ),
    Refused(with_video(output=DIRECTION | {"column": "way"}), {"output.column": "no-effect"}, "output.made direction"),
    Refused(
        with_video(output=DIRECTION, loss={"class_weights": "balanced"}),
        {"loss.class_weights": "no-effect"},
        "ways",
    ),
]


def test_a_direction_needs_an_order() -> None:
    recipe = load_recipe(with_video(encoder={"over_time": "none", "motion": [4]}, output=DIRECTION))
    assert recipe.generated_labels == "direction"
    by_place = with_video({"frames": 8}, {"over_time": "none"}, output=DIRECTION, attention={"score": "location"})
    assert load_recipe(by_place).videos == ["video"]


NO_EFFECT = [
    Refused(with_video({"frames": 8, "rate": 5}), {"inputs.video.rate": "no-effect"}, "frames 8"),
    Refused(with_video({"every": 2, "rate": 5}), {"inputs.video.every": "no-effect"}, "rate 5"),
    Refused(with_video(encoder={"spans": [3]}), {"inputs.video.encoder.spans": "motion"}, "1 0"),
    Refused(
        with_video(encoder={"over_time": "none", "layers": 2}),
        {"inputs.video.encoder.layers": "other-kind"},
        "over_time",
    ),
    Refused(
        with_video(encoder={"appearance": False, "motion": [4], "channels": [4]}),
        {"inputs.video.encoder.channels": "no-effect"},
        "appearance",
    ),
    Refused(with_video(encoder={"tuned": True}), {"inputs.video.encoder.tuned": "no-effect"}, "small"),
    Refused(
        with_video(encoder={"regions": True}, attention={"over": "video"}),
        {"inputs.video.encoder.regions": "no-effect"},
    ),
    Refused(
        with_video(
            {"height": 64, "width": 64, "frames": 4, "augment": {"flip": True}}, {"backbone": "efficientnet-lite0"}
        ),
        {"inputs.video.augment.flip": "no-effect"},
        "inputs.video.encoder.tuned",
    ),
    Refused(with_video({"frames": 4, "augment": {"speed": 0.2}}), {"inputs.video.augment.speed": "no-effect"}, "4"),
    Refused(with_video({"augment": {"time_width": 4}}), {"inputs.video.augment.time_width": "no-effect"}, "time_masks"),
]


def with_encoder(**encoder: Any) -> dict[str, Any]:
    return {"inputs": {"x": {"kind": "video"}}, "encoder": {"kind": "video", **encoder}}


REFUSED_OVER_TIME = [
    Refused(with_encoder(over_time="none", heads=2), {"encoder.heads": "other-kind"}, "encoder.over_time"),
    Refused(with_encoder(heads=2), {"encoder.heads": "other-kind"}, "encoder.over_time"),
    Refused(with_encoder(over_time="transformer", cell="lstm"), {"encoder.cell": "other-kind"}, "encoder.over_time"),
    Refused(with_encoder(over_time="none", layers=2), {"encoder.layers": "other-kind"}, "encoder.over_time"),
    Refused(with_encoder(over_time="transformer", longest=9), {"encoder.longest": "no-effect"}, "sinusoidal"),
    Refused(with_encoder(over_time="transformer", heads=3), {"encoder.heads": "heads"}, "3 256"),
    Refused(
        with_encoder(over_time="transformer", positions="learned", longest=9),
        {"encoder.longest": "learned-positions"},
        "9 inputs.x.most 256",
    ),
    Refused(with_encoder(over_time="both"), {"encoder.over_time": "value"}, "both recurrent transformer none"),
    Refused(with_encoder(over_time="none", recurrent=True), {"encoder.recurrent": "unknown-key"}),
    Refused(
        with_encoder(over_time="transformer", positions="none") | {"output": DIRECTION},
        {"encoder.over_time": "direction"},
        "transformer positions motion",
    ),
]


@pytest.mark.parametrize(
    "case", [*REFUSED, *REFUSED_LEVELS, *REFUSED_DIRECTIONS, *NO_EFFECT, *REFUSED_OVER_TIME], ids=str
)
def test_refused_recipes_of_videos(case: Refused) -> None:
    case.check()


@pytest.mark.parametrize(("recurrent", "over_time"), [(True, "recurrent"), (False, "none")])
def test_older_recipes_have_recurrent_in_place_of_over_time(recurrent: bool, over_time: str) -> None:
    settings = load_recipe(with_encoder(recurrent=recurrent)).encoder
    assert isinstance(settings, VideoEncoderSettings)
    assert (settings.over_time, settings.recurrent) == (over_time, recurrent)
    assert load_recipe(with_encoder(), overrides=[f"encoder.recurrent={recurrent}"]).encoder == settings


@pytest.mark.parametrize("name", [name for name in shipped() if load_recipe(name).videos])
def test_shipped_recipes_of_videos_take_a_transformer_over_time(name: str) -> None:
    recipe = load_recipe(name, overrides=["encoder.over_time=transformer"])
    assert recipe.view_of("video") == (recipe.encoder.places_size, "frames")
    assert recipe.encoder.places_size == recipe.encoder.size


@pytest.mark.parametrize("levels", [{"channels": [4] * 6}, {"channels": [4] * 6 + [16] * 2}, {"motion": [4] * 5}])
def test_levels_that_leave_something_are_built(levels: dict[str, Any]) -> None:
    settings = load_recipe(with_video(SMALL, levels)).encoder_of("video")
    assert isinstance(settings, VideoEncoderSettings)
    encoder = VideoEncoder(settings, channels=3, height=64, width=64)
    assert encoder.W_p.in_features > 0
