"""What cannot work, and what would do nothing, where inputs are videos."""

from __future__ import annotations

from collections.abc import Iterator

from seq2see.data.video_files import VideoAugmentSettings, VideoInput
from seq2see.recipe.schema import Recipe
from seq2see.settings.base import Settings, no_effect
from seq2see.settings.encoders import FILED, SMALL, TransformerLevelSettings, VideoEncoderSettings, unknown_backbone
from seq2see.settings.encoders import LEAST as HALVED

LEAST = 4
"""Pixels on a side without which there is nothing to see."""


def unwatchable(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of videos and of the networks that read them."""
    found = []
    for name, given in _videos(recipe):
        found += [f"inputs.{name}.{problem}" for problem in _cut_out(given)]
        settings, path = recipe.encoder_of(name), recipe.encoder_path(name)
        if isinstance(settings, VideoEncoderSettings):
            found += [f"{path}.{problem}" for problem in _levels(settings)]
            if given.frames == 1 and settings.motion and settings.motion_from == "changes":
                found.append(
                    f"inputs.{name}.frames: 1, and in one frame nothing moves ({path}.motion_from changes); allowed: 2 "
                    f"and more, 0 for all, or {path}.motion []"
                )
            found += _looked_at(name, given, settings, path) if settings.appearance else []
            found += _unreached(name, given, settings, path)
            if given.height < LEAST or given.width < LEAST:
                found.append(f"inputs.{name}.height: {given.height} x {given.width} pixels; allowed: {LEAST} and more")
    layouts = {name: recipe.view_of(name)[1] for name in recipe.looked_at}
    if recipe.attention.scope != "global":
        found += [
            f"attention.scope: {recipe.attention.scope} is a window in a line or a grid, and '{name}' are cells of "
            "many frames; allowed: global"
            for name, layout in layouts.items()
            if layout == "frames-grid"
        ]
    return found


def _cut_out(given: VideoInput) -> Iterator[str]:
    if given.end and given.end <= given.start:
        yield f"end: {given.end:g} s is not behind the start at {given.start:g} s; allowed: more, or 0"
    left, top, right, bottom = given.region
    if left >= right or top >= bottom:
        yield f"region: {list(given.region)} has nothing in it; allowed: left, top, right, bottom, each pair rising"


def _levels(settings: VideoEncoderSettings) -> Iterator[str]:
    if not settings.appearance and not settings.motion:
        yield "appearance: false, and motion has no levels: nothing is seen; allowed: true, or motion [16, 32, 64]"
    if settings.spans and len(settings.spans) != len(settings.motion):
        yield (
            f"spans: {len(settings.spans)} given for {len(settings.motion)} levels of motion; allowed: one for each, "
            "or none"
        )
    elif any(span % 2 == 0 for span in settings.spans):
        yield f"spans: {settings.spans} must be odd, as many frames before as behind; allowed: 1, 3, 5, .."
    if settings.pooled and len(settings.pooled) != len(settings.channels):
        yield (
            f"pooled: {len(settings.pooled)} given for {len(settings.channels)} levels of channels; allowed: one for "
            "each, or none"
        )


def _looked_at(name: str, given: VideoInput, settings: VideoEncoderSettings, path: str) -> Iterator[str]:
    """What a network that reads single frames asks for."""
    wrong = unknown_backbone(settings.backbone)
    if wrong is not None:
        yield f"{path}.backbone: {wrong}"
        return
    if settings.backbone == SMALL:
        return
    if given.height < HALVED or given.width < HALVED:
        yield f"inputs.{name}.height: {given.height} x {given.width} pixels; allowed: at least {HALVED} each"
    if given.colour == "grey":
        yield f"inputs.{name}.colour: {settings.backbone} was trained in colour; allowed: rgb"
    if settings.frozen and not given.frames:
        yield (
            f"inputs.{name}.frames: 0, and kept maps are of one number of frames; allowed: a number, or "
            f"{path}.tuned: true"
        )
    if settings.backbone in FILED and settings.weights is None and not settings.tuned:
        yield (
            f"{path}.weights: {settings.backbone} is frozen and has no weights; allowed: a file of weights, or "
            f"{path}.tuned: true"
        )


def _unreached(name: str, given: VideoInput, settings: VideoEncoderSettings, path: str) -> Iterator[str]:
    """Learned positions that end before a clip does."""
    key = "frames" if given.frames else "most"
    frames = given.frames or given.most
    if isinstance(settings, TransformerLevelSettings) and settings.positions == "learned" and frames > settings.longest:
        yield (
            f"{path}.longest: {settings.longest} learned positions, and inputs.{name}.{key} is {frames}; allowed: "
            f"{frames} and more, or sinusoidal positions, which have no end"
        )


def unwatched(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of settings without effect."""
    found: dict[str, str] = {}
    for name, given in _videos(recipe):
        path = f"inputs.{name}"
        if given.frames:
            found |= changed(given, path, ["rate", "every", "most"], f"frames: {given.frames} are read of every clip")
        elif given.rate:
            found |= changed(given, path, ["every"], f"rate: {given.rate:g} frames a second are read")
        settings = recipe.encoder_of(name)
        if isinstance(settings, VideoEncoderSettings):
            found |= _idle(settings, recipe.encoder_path(name))
            if settings.regions and f"{name}.regions" not in recipe.looked_at:
                key = f"{recipe.encoder_path(name)}.regions"
                found[key] = f"nobody looks at them; name {name}.regions in attention.over"
            if settings.frozen:
                reason = f"{recipe.encoder_path(name)}.tuned is false: each clip is read once, and its maps kept"
                keys = list(VideoAugmentSettings.model_fields)
                found |= changed(given.augment, f"{path}.augment", keys, reason)
    return found


def _idle(settings: VideoEncoderSettings, path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if not settings.appearance:
        keys = ["backbone", "weights", "tuned", "channels", "pooled"]
        found |= changed(settings, path, keys, f"{path}.appearance is false")
    elif settings.backbone == SMALL:
        found |= changed(settings, path, ["tuned", "weights"], "backbone small is trained with the rest")
    else:
        reason = f"backbone {settings.backbone} is built as it is"
        found |= changed(settings, path, ["channels", "pooled"], reason)
    if not settings.motion:
        found |= changed(settings, path, ["spans", "motion_from"], f"{path}.motion has no levels")
    if isinstance(settings, TransformerLevelSettings) and settings.positions != "learned":
        found |= changed(settings, path, ["longest"], f"positions {settings.positions} have no limit")
    return found


def changed(settings: Settings, path: str, keys: list[str], reason: str) -> dict[str, str]:
    return {problem.path: problem.message for problem in no_effect(settings, path, keys, reason)}


def _videos(recipe: Recipe) -> Iterator[tuple[str, VideoInput]]:
    for name, given in recipe.inputs.items():
        if isinstance(given, VideoInput):
            yield name, given
