"""Recipes with sounds, and CTC: what is filled in, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.encoders.pyramidal import PyramidalEncoderSettings
from seq2see.recipe import load_recipe
from tests.recipe.refusing import ONE, Refused


def with_sound(sound: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {"inputs": {"audio": {"kind": "sound", **(sound or {})}}, **changes}


def test_the_usual_encoder_of_a_sound_is_pyramidal() -> None:
    recipe = load_recipe(with_sound())
    settings = recipe.encoder_of("audio")
    assert isinstance(settings, PyramidalEncoderSettings)
    assert recipe.view_of("audio") == (settings.places_size, "frames")
    assert recipe.read_along is None


REFUSED = [
    Refused(with_sound({"hop": 30}), {"inputs.audio.hop": "sound-windows"}, "30 25"),
    Refused(
        with_sound({"window": 0.5, "hop": 0.1, "rate": 1000}), {"inputs.audio.window": "sound-windows"}, "2 samples"
    ),
    Refused(with_sound({"window": 400, "longest": 0.2}), {"inputs.audio.longest": "sound-windows"}, "0.2 400"),
    Refused(with_sound({"rate": 10}), {"inputs.audio.rate": "value"}, "10"),
    Refused(with_sound({"mels": 0}), {"inputs.audio.mels": "value"}, "0"),
    Refused(
        with_sound({"mels": 8, "augment": {"frequency_masks": 1}}),
        {"inputs.audio.augment.frequency_width": "frequency-masks"},
        "10 8",
    ),
    Refused(
        with_sound({"encoder": {"layers": 2, "halvings": 3}}), {"inputs.audio.encoder.halvings": "halvings"}, "3 2"
    ),
    Refused(
        with_sound({"encoder": {"kind": "hierarchical"}}),
        {"inputs.audio.encoder.kind": "readers"},
        "hierarchical audio sound pyramidal transformer",
    ),
    Refused(with_sound(decoder={"copy_from": "audio"}), {"decoder.copy_from": "copying"}, "audio"),
    Refused(
        with_sound({"augment": {"time_width": 50}}),
        {"inputs.audio.augment.time_width": "no-effect"},
        "augment.time_masks 0",
    ),
    Refused(
        with_sound({"augment": {"frequency_width": 5}}),
        {"inputs.audio.augment.frequency_width": "no-effect"},
        "augment.frequency_masks 0",
    ),
    Refused(with_sound(output={"kind": "label"}, loss={"ctc": 0.5}), {"loss.ctc": "ctc-settings"}, "label"),
    Refused({"loss": {"ctc": 0.5}}, {"loss.ctc": "ctc-settings"}, "inputs"),
    Refused(with_sound(search={"ctc": 0.3}), {"search.ctc": "ctc-settings"}, "loss.ctc 0"),
    Refused(with_sound(loss={"ctc_first": 0.3}), {"loss.ctc_first": "ctc-settings"}, "loss.ctc 0"),
    Refused(with_sound(loss={"ctc_alignment": 0.3}), {"loss.ctc_alignment": "ctc-settings"}, "loss.ctc 0"),
    Refused(
        with_sound(attention="none", loss={"ctc": 1.0, "ctc_alignment": 0.3}),
        {"loss.ctc_alignment": "ctc-settings"},
        "audio",
    ),
    Refused(with_sound(search={"replace_unknown": True}), {"search.replace_unknown": "unknown-words"}, "audio symbols"),
]


NOT_IN_A_LINE = [
    Refused(
        {"inputs": {"words": {"kind": "set"}}, "encoder": {"kind": "deep-sets"}, "loss": {"ctc": 0.3}},
        {"loss.ctc": "ctc"},
        "words set 0",
    ),
    Refused(
        {"inputs": {"document": {"kind": "texts"}}, "encoder": {"kind": "hierarchical"}, "loss": {"ctc": 0.3}},
        {"loss.ctc": "ctc"},
        "document sentences 0",
    ),
    Refused(
        {"inputs": {"image": {"kind": "image", "encoder": {"places": "vector"}}}, "loss": {"ctc": 0.3}},
        {"loss.ctc": "ctc"},
        "image vector 0",
    ),
]


@pytest.mark.parametrize("case", [*REFUSED, *NOT_IN_A_LINE], ids=str)
def test_refused_recipes_of_sounds_and_ctc(case: Refused) -> None:
    case.check()


def test_ctc_reads_places_in_a_line_of_any_kind() -> None:
    assert load_recipe(with_sound(loss={"ctc": 0.3})).read_along == "audio"
    assert load_recipe(with_sound(loss={"ctc": 0.3}, attention={"score": "none"})).read_along == "audio"
    assert load_recipe({**ONE, "loss": {"ctc": 0.3}}).read_along == "source"
    assert load_recipe({"inputs": {"image": {"kind": "image"}}, "loss": {"ctc": 0.3}}).read_along == "image"
