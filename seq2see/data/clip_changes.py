"""Clips changed at random while a model learns: a whole clip alike, and its frames left out or doubled."""

from __future__ import annotations

import numpy as np

from seq2see.data.pictures import Pixels
from seq2see.data.videos import Clip
from seq2see.recipe.video_settings import VideoAugmentSettings


def changed(clip: Clip, settings: VideoAugmentSettings, random: np.random.Generator) -> Clip:
    """A clip of the same size, of about as many frames."""
    pixels, times = clip.pixels, clip.times
    if settings.jitter:
        kept = jittered(len(times), settings.jitter, random)
        pixels, times = pixels[kept], times[kept]
    if settings.flip and random.random() < 0.5:
        pixels = pixels[..., ::-1]
    if settings.shift:
        pixels = _shifted(pixels, settings.shift, random)
    if settings.light:
        pixels = _lit(pixels, settings.light, random)
    return Clip(np.ascontiguousarray(pixels), times)


def jittered(frames: int, share: float, random: np.random.Generator) -> list[int]:
    """Numbers of frames in their order: of the share that is drawn half are left out, half stand there twice; one at
    least is left."""
    drawn = random.random(frames)
    times = np.where(drawn < share / 2, 0, np.where(drawn < share, 2, 1))
    found = np.repeat(np.arange(frames), times)
    return [int(number) for number in found] or [0]


def _shifted(pixels: Pixels, share: float, random: np.random.Generator) -> Pixels:
    """Moved up or down and to a side; what comes in is what stood at the edge."""
    found = pixels
    for axis in (2, 3):
        most = int(share * pixels.shape[axis])
        by = int(random.integers(-most, most + 1))
        where = (np.arange(pixels.shape[axis]) - by).clip(0, pixels.shape[axis] - 1)
        found = found.take(where, axis=axis)
    return found


def _lit(pixels: Pixels, share: float, random: np.random.Generator) -> Pixels:
    """Brighter or darker, and with more or less contrast around the clip's own mean."""
    bright, contrast = random.uniform(1 - share, 1 + share, 2)
    mean = float(pixels.mean())
    table = ((np.arange(256) - mean) * contrast + mean) * bright
    return np.asarray(table.clip(0, 255).round().astype(np.uint8)[pixels])
