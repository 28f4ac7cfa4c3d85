"""Levels of convolutions that halve a picture until nothing of it is left to tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seq2see.data.image_files import ImageInput
from seq2see.data.video_files import VideoInput
from seq2see.recipe.schema import Recipe
from seq2see.settings.encoders import SMALL, ConvolutionalEncoderSettings, VideoEncoderSettings

GROUPS = 8
"""Maps up to which each is normalised by itself; more are normalised in groups."""


def shrunk_away(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of encoders with more levels than their pictures or frames have pixels to halve.

    A map of one cell that is normalised by itself is one number less itself: 0, whatever was seen. Where widths differ
    the narrowest picture counts, which is one cell wide.
    """
    found = []
    for name, given in recipe.inputs.items():
        settings, path = recipe.encoder_of(name), recipe.encoder_path(name)
        if not isinstance(given, ImageInput | VideoInput):
            continue
        for key, maps, sizes in _levels(settings, given.height, given.width or 1):
            level = _lost(maps, sizes)
            if level is not None:
                few = f"at most {level} levels, or more than {GROUPS} maps" if level else f"more than {GROUPS} maps"
                found.append(
                    f"{path}.{key}: level {level + 1} of {len(maps)} has one cell left of the {_size(given)} pixels of "
                    f"'{name}', and each of its {maps[level]} maps is normalised by itself: nothing comes through; "
                    f"allowed: {few} there"
                )
    return found


Sizes = list[tuple[int, int]]
"""(rows, columns) that each level normalises."""


def _levels(settings: object, height: int, width: int) -> Iterator[tuple[str, list[int], Sizes]]:
    """(key, maps of each level, sizes) of each stack of levels. `channels` halve what was normalised, `motion` halves
    first."""
    if not isinstance(settings, ConvolutionalEncoderSettings | VideoEncoderSettings):
        return
    moving = settings.motion if isinstance(settings, VideoEncoderSettings) else []
    looks = not isinstance(settings, VideoEncoderSettings) or settings.appearance
    if looks and settings.backbone == SMALL:
        pooled = settings.pooled or ["both"] * len(settings.channels)
        yield "channels", settings.channels, _halved(height, width, pooled)[:-1]
    if moving:
        yield "motion", moving, _halved(height, width, ["both"] * len(moving))[1:]


def _halved(rows: int, columns: int, pooled: Sequence[str]) -> Sizes:
    """The size before the first level, and after each.

    >>> _halved(5, 4, ["both", "height"])
    [(5, 4), (3, 2), (2, 2)]
    """
    sizes = [(rows, columns)]
    for halved in pooled:
        rows, columns = -(-rows // 2), -(-columns // 2) if halved == "both" else columns
        sizes.append((rows, columns))
    return sizes


def _lost(maps: list[int], sizes: Sizes) -> int | None:
    """The first level, from 0, that normalises single numbers; None where there is none. (A wrong number of `pooled`
    is said elsewhere.)"""
    levels = enumerate(zip(maps, sizes, strict=False))
    return next((number for number, (wide, size) in levels if size == (1, 1) and wide in (1, 2, 4, GROUPS)), None)


def _size(given: ImageInput | VideoInput) -> str:
    return f"{given.height} x {given.width}" if given.width else f"{given.height}"
