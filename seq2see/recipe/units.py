"""What a place of a Transformer is made of where an input has no symbols: frames of a sound, pixels of a picture."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from seq2see.data.image_files import ImageInput
from seq2see.data.sound_files import SoundInput
from seq2see.recipe.changed import changed
from seq2see.recipe.paths import put, read_by
from seq2see.recipe.schema import Recipe
from seq2see.settings.encoders import EncoderSettings, TransformerEncoderSettings

FRAMES = 4
"""Of a place, where nothing is said: as many as two halvings of a pyramid leave."""

PATCHES = (16, 8, 4, 2, 1)
"""Pixels of a patch's side where nothing is said: the largest of which there are `ACROSS` to the shorter side."""

ACROSS = 6
STRIPS = 8
"""Lines of text, whose width is not known before: strips as high as the line and this much less wide."""


def filled_in(recipe: Recipe) -> Recipe:
    """The recipe with `stack` and `patch` said wherever a Transformer reads a sound or a picture.

    Inputs that share an encoder and would have other places each get settings of their own.
    """
    for path, names in read_by(recipe).items():
        settings = recipe.encoder_of(names[0])
        if not isinstance(settings, TransformerEncoderSettings):
            continue
        meant = {name: _meant(recipe.inputs[name], settings) for name in names}
        alike = all(one == meant[names[0]] for one in meant.values())
        for name, units in ({names[0]: meant[names[0]]} if alike else meant).items():
            rest = {} if alike else {"stack": None, "patch": None}
            if units:
                where = path if alike else f"inputs.{name}.encoder"
                recipe = put(recipe, where, settings.model_copy(update=rest | units))
    return recipe


def _meant(given: Any, settings: TransformerEncoderSettings) -> dict[str, Any]:
    if isinstance(given, SoundInput):
        return {"stack": settings.stack or FRAMES}
    return {"patch": settings.patch or _patch(given)} if isinstance(given, ImageInput) else {}


def _patch(given: ImageInput) -> int | tuple[int, int]:
    if not given.width:
        return given.height, max(given.height // STRIPS, 1)
    shorter = min(given.height, given.width)
    return next((side for side in PATCHES if side * ACROSS <= shorter), PATCHES[-1])


def unfitting(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of places that cannot be cut out, or do not know where they are."""
    found = []
    for path, name, settings in _read(recipe):
        given = recipe.inputs[name]
        if isinstance(given, ImageInput):
            found += [f"{path}.{problem}" for problem in _cut(name, given, settings)]
        if settings.positions == "learned":
            found += [f"{path}.longest: {problem}" for problem in _unreached(name, given, settings)]
    return found


def _read(recipe: Recipe) -> Iterator[tuple[str, str, TransformerEncoderSettings]]:
    for path, names in read_by(recipe).items():
        for name in names:
            settings = recipe.encoder_of(name)
            if isinstance(settings, TransformerEncoderSettings):
                yield path, name, settings


def _cut(name: str, given: ImageInput, settings: TransformerEncoderSettings) -> Iterator[str]:
    if settings.positions == "rotary":
        yield (
            f"positions: rotary goes by how far apart places are in a line, and the patches of '{name}' lie in rows "
            "and columns; allowed: sinusoidal, learned, none"
        )
    down, across = settings.pixels or (1, 1)
    wide = given.width or across + 1
    if down > given.height or across > wide or (down, across) == (given.height, wide):
        size = f"{given.height} x {given.width}" if given.width else f"{given.height}"
        yield f"patch: {down} x {across} pixels leave no two places in a picture of {size}; allowed: less"


def _unreached(name: str, given: Any, settings: TransformerEncoderSettings) -> Iterator[str]:
    """Learned positions that end before the input does."""
    if isinstance(given, SoundInput):
        places = ceil(given.longest * 1000 / given.hop / (settings.stack or 1))
        key, allowed = f"inputs.{name}.longest", f"{given.longest:g} s"
    elif isinstance(given, ImageInput) and settings.pixels is not None:
        down, across = settings.pixels
        wide = given.width or given.widest
        places = max(ceil(given.height / down), ceil(wide / across))
        key, allowed = f"inputs.{name}.{'width' if given.width else 'widest'}", f"{wide} pixels"
        if not wide:
            yield f"learned positions end, and lines of '{name}' do not; allowed: a limit (inputs.{name}.widest)"
            return
    else:
        return
    if places > settings.longest:
        yield (
            f"{settings.longest} learned positions, and {allowed} ({key}) are {places} places; allowed: {places} and "
            "more, or sinusoidal positions, which have no end"
        )


def idle_units(recipe: Recipe, path: str, settings: EncoderSettings) -> dict[str, str]:
    """{path: reason} of settings for another kind of input than those that are read."""
    names = read_by(recipe).get(path, [])
    if not isinstance(settings, TransformerEncoderSettings) or not names:
        return {}
    kinds = {recipe.inputs[name].kind for name in names}
    reason = f"{', '.join(names)}: no {{}} is read"
    found = {} if "sound" in kinds else changed(settings, path, ["stack"], reason.format("sound"))
    found |= {} if "image" in kinds else changed(settings, path, ["patch"], reason.format("picture"))
    return found | (changed(settings, path, ["embedding"], reason.format("symbol")) if kinds <= FILES else {})


FILES = {"sound", "image"}
"""Inputs without symbols that a Transformer reads."""
