"""What cannot work, and what would do nothing, where inputs are sounds or frames are read in a pyramid."""

from __future__ import annotations

from collections.abc import Iterator

from seq2see.data.sound_files import SoundAugmentSettings, SoundInput
from seq2see.recipe.schema import Recipe
from seq2see.settings.encoders import PyramidalEncoderSettings

LEAST = 2
"""Samples without which a window has no frequencies."""


def unheard(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of sounds and of the encoders that read them."""
    found = []
    for name, given in _sounds(recipe):
        path = f"inputs.{name}"
        if given.hop > given.window:
            found.append(
                f"{path}.hop: {given.hop:g} ms skips sound between windows of {given.window:g} ms; allowed: at most "
                f"{given.window:g}"
            )
        if min(given.window * given.rate / 1000, LEAST * given.hop * given.rate / 1000) < LEAST:
            found.append(f"{path}.window: shorter than {LEAST} samples, or hop than one; allowed: more ms, or a rate")
        if given.window / 1000 > given.longest:
            found.append(f"{path}.longest: {given.longest:g} s is less than one window of {given.window:g} ms")
        if given.augment.frequency_masks and given.augment.frequency_width >= given.mels:
            found.append(
                f"{path}.augment.frequency_width: {given.augment.frequency_width} would blot out all {given.mels} mels;"
                f" allowed: less than {given.mels}"
            )
    for name in recipe.inputs:
        settings = recipe.encoder_of(name)
        if isinstance(settings, PyramidalEncoderSettings) and settings.halvings > settings.layers:
            found.append(
                f"{recipe.encoder_path(name)}.halvings: {settings.halvings} in {settings.layers} layers, each of which "
                f"halves once; allowed: at most {settings.layers}"
            )
    return found


def silent(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of settings without effect."""
    found: dict[str, str] = {}
    fields = SoundAugmentSettings.model_fields
    for name, given in _sounds(recipe):
        for kind in ("time", "frequency"):
            unused = not getattr(given.augment, f"{kind}_masks")
            if unused and getattr(given.augment, f"{kind}_width") != fields[f"{kind}_width"].default:
                found[f"inputs.{name}.augment.{kind}_width"] = f"augment.{kind}_masks is 0"
    return found


def _sounds(recipe: Recipe) -> Iterator[tuple[str, SoundInput]]:
    for name, given in recipe.inputs.items():
        if isinstance(given, SoundInput):
            yield name, given
