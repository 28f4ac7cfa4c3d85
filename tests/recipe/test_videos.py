"""Recipes with videos: what is filled in, what is refused, and what would do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.encoders.video import VideoEncoder, VideoEncoderSettings
from seq2see.errors import UserError
from seq2see.recipe import load_recipe


def recipe(video: dict[str, Any] | None = None, encoder: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"inputs": {"video": {"kind": "video", "encoder": encoder or {}, **(video or {})}}, **more}


def test_a_video_is_read_as_one_where_nothing_is_said() -> None:
    made = load_recipe({"inputs": {"video": {"kind": "video"}}, "loss": {"ctc": 0.3}})
    settings = made.encoder_of("video")
    assert isinstance(settings, VideoEncoderSettings)
    assert made.view_of("video") == (settings.places_size, "frames")
    assert made.read_along == "video"


def test_regions_are_looked_at_beside_or_instead_of_frames() -> None:
    for over in ("video.regions", ["video", "video.regions"]):
        made = load_recipe(recipe(encoder={"regions": True}, attention={"over": over}))
        assert made.view_of("video.regions")[1] == "frames-grid"


WRONG: list[tuple[dict[str, Any], str]] = [
    (recipe({"start": 2, "end": 1}), r"inputs\.video\.end: 1 s is not behind the start at 2 s"),
    (recipe({"region": [0.5, 0, 0.5, 1]}), r"inputs\.video\.region: .* has nothing in it"),
    (recipe({"region": [0, 0, 2, 1]}), r"inputs\.video\.region"),
    (recipe({"height": 2}), r"inputs\.video\.height: 2 x 112 pixels; allowed: 4 and more"),
    (recipe({"every": 0}), r"inputs\.video\.every"),
    (recipe(encoder={"appearance": False}), r"video\.encoder\.appearance: false, and motion has no levels"),
    (recipe(encoder={"motion": [4], "spans": [3, 3]}), r"encoder\.spans: 2 given for 1 levels of motion"),
    (recipe(encoder={"motion": [4], "spans": [2]}), r"encoder\.spans: \[2\] must be odd"),
    (recipe(encoder={"backbone": "resnet-50"}), r"unknown backbone 'resnet-50' \(did you mean 'resnet50'\?\)"),
    (
        recipe({"height": 224, "width": 224}, {"backbone": "efficientnet-lite0"}),
        r"inputs\.video\.frames: 0, and kept maps are of one number of frames",
    ),
    (recipe(attention={"over": "video.regions"}), r"attention\.over: there is no input 'video\.regions'"),
    (
        recipe(encoder={"regions": True}, attention={"over": "video.regions", "scope": "local-monotonic"}),
        r"attention\.scope: local-monotonic is a window in a line or a grid",
    ),
    (
        recipe(encoder={"regions": True}, attention={"over": "video.regions"}, loss={"ctc": 0.3}),
        r"loss\.ctc: the places of 'video\.regions' lie as frames-grid",
    ),
]

SEEN = {"height": 64, "width": 64}
WRONG += [
    (
        recipe(SEEN, {"channels": [4] * 8}),
        r"encoder\.channels: level 7 of 8 has one cell left of the 64 x 64 pixels of 'video', .* at most 6 levels",
    ),
    (recipe(SEEN, {"motion": [16] * 5 + [8]}), r"encoder\.motion: level 6 of 6 has one cell left .* at most 5 levels"),
    (
        recipe({"frames": 1}, {"motion": [4], "motion_from": "changes"}),
        r"inputs\.video\.frames: 1, and in one frame nothing moves .* allowed: 2 and more",
    ),
    (recipe(attention={"over": "video.regions"}), r"; inputs\.video\.encoder\.regions=true makes video\.regions$"),
]

DIRECTION = {"kind": "label", "made": "direction"}
WRONG += [
    (
        {"inputs": {"source": {"kind": "text"}}, "output": DIRECTION},
        r"output\.made: direction is that of a video, and the inputs are text; allowed: with a video",
    ),
    ({"output": DIRECTION}, r"output\.made: direction is that of a video, and the inputs are none"),
    (recipe(output={"kind": "label", "made": "speed"}), r"output\.made: .*direction"),
    (recipe(output={"kind": "text", "made": "direction"}), r"output\.made"),
    (recipe({"frames": 1}, output=DIRECTION), r"video\.frames: 1, and a single frame is the same both ways"),
    (recipe({"most": 1}, output=DIRECTION), r"video\.most: 1, and a single frame is the same both ways"),
    (recipe({"rate": 5}, output=DIRECTION), r"video\.rate: 5 a second are seldom evenly spaced"),
    (recipe(encoder={"over_time": "none"}, output=DIRECTION), r"encoder\.over_time: none, and no level of motion sees"),
    (
        recipe(encoder={"over_time": "none", "motion": [4], "spans": [1]}, output=DIRECTION),
        r"encoder\.over_time: none, and no level of motion sees",
    ),
    (recipe(output=DIRECTION | {"column": "way"}), r"output\.column: has no effect here: output\.made: direction"),
    (
        recipe(output=DIRECTION, loss={"class_weights": "balanced"}),
        r"loss\.class_weights: has no effect here",
    ),
]


def test_a_direction_needs_an_order() -> None:
    assert (
        load_recipe(recipe(encoder={"over_time": "none", "motion": [4]}, output=DIRECTION)).generated_labels
        == "direction"
    )
    by_place = recipe({"frames": 8}, {"over_time": "none"}, output=DIRECTION, attention={"score": "location"})
    assert load_recipe(by_place).videos == ["video"]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_what_cannot_work_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(given)


IDLE: list[tuple[dict[str, Any], str]] = [
    (recipe({"frames": 8, "rate": 5}), r"inputs\.video\.rate: has no effect here: frames: 8 are read"),
    (recipe({"every": 2, "rate": 5}), r"inputs\.video\.every: has no effect here: rate: 5 frames a second"),
    (recipe(encoder={"spans": [3]}), r"encoder\.spans"),
    (recipe(encoder={"over_time": "none", "layers": 2}), r"encoder\.layers: has no effect here: only .*over_time"),
    (recipe(encoder={"appearance": False, "motion": [4], "channels": [4]}), r"encoder\.channels: has no effect here"),
    (recipe(encoder={"tuned": True}), r"encoder\.tuned: has no effect here: backbone small is trained"),
    (recipe(encoder={"regions": True}, attention={"over": "video"}), r"encoder\.regions: has no effect here: nobody"),
    (
        recipe({"height": 64, "width": 64, "frames": 4, "augment": {"flip": True}}, {"backbone": "efficientnet-lite0"}),
        r"inputs\.video\.augment\.flip: has no effect here",
    ),
]


@pytest.mark.parametrize(("given", "said"), IDLE)
def test_what_would_do_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(given)


@pytest.mark.parametrize("levels", [{"channels": [4] * 6}, {"channels": [4] * 6 + [16] * 2}, {"motion": [4] * 5}])
def test_levels_that_leave_something_are_built(levels: dict[str, Any]) -> None:
    settings = load_recipe(recipe(SEEN, levels)).encoder_of("video")
    assert isinstance(settings, VideoEncoderSettings)
    made = VideoEncoder(settings, channels=3, height=64, width=64)
    assert made.W_p.in_features > 0


def test_levels_of_pictures_are_held_to_the_same_and_narrow_ones_count() -> None:
    image = {"kind": "image", "height": 16, "encoder": {"channels": [32, 32, 32, 32, 8]}}
    for width in (0, 16):
        with pytest.raises(UserError, match=r"inputs\.image\.encoder\.channels: level 5 of 5 .* at most 4 levels"):
            load_recipe({"inputs": {"image": {**image, "width": width}}})
    load_recipe({"inputs": {"image": {**image, "width": 32}}})
