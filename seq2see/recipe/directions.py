"""What cannot work, and what would do nothing, where the output is the direction in which a video is read."""

from __future__ import annotations

from collections.abc import Iterator

from seq2see.data.video_files import VideoInput
from seq2see.recipe.schema import Recipe
from seq2see.settings.encoders import TransformerLevelSettings, VideoEncoderSettings

IN_ORDER = ("location",)
"""Scores that go by where a place lies, so that frames that know nothing of each other are told apart."""


def undirected(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of recipes whose videos look the same both ways, or give themselves away."""
    if recipe.made is None:
        return []
    if not recipe.videos:
        kinds = ", ".join(dict.fromkeys(given.kind for given in recipe.inputs.values())) or "none"
        return [f"output.made: {recipe.made} is that of a video, and the inputs are {kinds}; allowed: with a video"]
    found = []
    for name in recipe.videos:
        given, settings = recipe.inputs[name], recipe.encoder_of(name)
        assert isinstance(given, VideoInput)
        found += [f"inputs.{name}.{problem}" for problem in _read(given)]
        if isinstance(settings, VideoEncoderSettings) and not _ordered(recipe, settings):
            found.append(
                f"{recipe.encoder_path(name)}.over_time: {_without_order(settings)}, and no level of motion sees "
                "several frames: their order is lost, and both directions are the same; allowed: recurrent, "
                "transformer with positions, or motion [16, 32, 64]"
            )
    return found


def _read(given: VideoInput) -> Iterator[str]:
    if given.frames == 1 or (not given.frames and given.most == 1):
        key = "frames" if given.frames else "most"
        yield f"{key}: 1, and a single frame is the same both ways; allowed: 2 and more"
    if given.rate and not given.frames:
        yield (
            f"rate: {given.rate:g} a second are seldom evenly spaced, and the spaces would tell the direction; "
            "allowed: 0, with `frames` or `every`"
        )


def _ordered(recipe: Recipe, settings: VideoEncoderSettings) -> bool:
    """Whether anything that is made of the frames depends on their order."""
    placed = isinstance(settings, TransformerLevelSettings) and settings.positions != "none"
    over = settings.recurrent or placed
    seen = over or any(span > 1 for span in settings.seen)
    attention = recipe.attention
    return seen or attention.score in IN_ORDER or attention.scope != "global"


def _without_order(settings: VideoEncoderSettings) -> str:
    return settings.over_time + " without positions" * (settings.over_time == "transformer")


def needless(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of settings without effect."""
    found: dict[str, str] = {}
    if recipe.made is not None:
        if recipe.output.column is not None:
            found["output.column"] = f"output.made: {recipe.made} is read from no column"
        if recipe.loss.class_weights == "balanced":
            found["loss.class_weights"] = "every row is read both ways: both labels are as frequent"
    return found
