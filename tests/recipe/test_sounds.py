"""Recipes with sounds: what is filled in, what is refused, and what would do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.encoders.pyramidal import PyramidalEncoderSettings
from seq2see.errors import UserError
from seq2see.recipe import load_recipe


def recipe(sound: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {"inputs": {"audio": {"kind": "sound", **(sound or {})}}, **changes}


def test_a_sound_is_read_by_a_pyramid_where_nothing_is_said() -> None:
    made = load_recipe(recipe())
    settings = made.encoder_of("audio")
    assert isinstance(settings, PyramidalEncoderSettings)
    assert made.view_of("audio") == (settings.places_size, "frames")
    assert made.read_along is None


WRONG: list[tuple[dict[str, Any], str]] = [
    (recipe({"hop": 30}), r"inputs\.audio\.hop: 30 ms skips sound between windows of 25 ms; allowed: at most 25"),
    (recipe({"window": 0.5, "hop": 0.1, "rate": 1000}), r"inputs\.audio\.window: shorter than 2 samples"),
    (recipe({"window": 400, "longest": 0.2}), r"inputs\.audio\.longest: 0\.2 s is less than one window"),
    (recipe({"rate": 10}), r"inputs\.audio\.rate"),
    (recipe({"mels": 0}), r"inputs\.audio\.mels"),
    (
        recipe({"mels": 8, "augment": {"frequency_masks": 1}}),
        r"inputs\.audio\.augment\.frequency_width: 10 would hide all 8 mels; allowed: less than 8",
    ),
    (recipe({"encoder": {"layers": 2, "halvings": 3}}), r"audio\.encoder\.halvings: 3 in 2 layers.* at most 2"),
    (
        recipe({"encoder": {"kind": "hierarchical"}}),
        r"hierarchical does not read 'audio', an input of kind sound; allowed: pyramidal, transformer",
    ),
    (recipe(decoder={"copy_from": "audio"}), r"decoder\.copy_from: 'audio' is no text"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_what_cannot_work_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(given)


IDLE: list[tuple[dict[str, Any], str]] = [
    (recipe({"augment": {"time_width": 50}}), r"augment\.time_width: has no effect here: augment\.time_masks is 0"),
    (
        recipe({"augment": {"frequency_width": 5}}),
        r"frequency_width: has no effect here: augment\.frequency_masks is 0",
    ),
    (recipe(output={"kind": "label"}, loss={"ctc": 0.5}), r"loss\.ctc: has no effect here: a label has no symbols"),
    ({"loss": {"ctc": 0.5}}, r"loss\.ctc: has no effect here: a model without inputs has no places to read"),
    (recipe(search={"replace_unknown": True}), r"search\.replace_unknown: has no effect here"),
]


@pytest.mark.parametrize(("given", "said"), IDLE)
def test_what_would_do_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(given)


@pytest.mark.parametrize(
    ("given", "layout"),
    [
        ({"inputs": {"words": {"kind": "set"}}, "encoder": {"kind": "deep-sets"}}, "set"),
        ({"inputs": {"document": {"kind": "texts"}}, "encoder": {"kind": "hierarchical"}}, "sentences"),
        ({"inputs": {"image": {"kind": "image", "encoder": {"places": "vector"}}}}, "vector"),
    ],
)
def test_nothing_is_read_along_places_in_no_line(given: dict[str, Any], layout: str) -> None:
    with pytest.raises(UserError, match=rf"loss\.ctc: the places of '\w+' lie as {layout}"):
        load_recipe({**given, "loss": {"ctc": 0.3}})


def test_lines_of_all_kinds_are_read_along() -> None:
    assert load_recipe(recipe(loss={"ctc": 0.3})).read_along == "audio"
    assert load_recipe(recipe(loss={"ctc": 0.3}, attention={"score": "none"})).read_along == "audio"
    assert load_recipe({"inputs": {"source": {}}, "loss": {"ctc": 0.3}}).read_along == "source"
    assert load_recipe({"inputs": {"image": {"kind": "image"}}, "loss": {"ctc": 0.3}}).read_along == "image"
