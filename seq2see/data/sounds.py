"""Decoded sounds as a model hears them: brought to one rate, frames of energies, changed at random while learning."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.mel import frames_in, hop_of, log_mels
from seq2see.data.resampling import Samples, resampled
from seq2see.data.voices import filtered, in_voice
from seq2see.recipe.sound_settings import SoundAugmentSettings, SoundInput

MOST_BLOTTED = 4
"""A mask takes at most one part in so many of a sound, however short it is."""


def heard(
    samples: Samples, rate: int, settings: SoundInput, random: np.random.Generator | None = None
) -> Float[Tensor, "frames mels"]:
    """A decoded sound as frames of log-mel energies; `random`: changed as `augment` says."""
    if random is not None:
        samples, rate = spoken_otherwise(samples, rate, settings.augment, random)
    frames = log_mels(torch.from_numpy(resampled(samples, rate, settings.rate)), settings)
    if random is None:
        return frames
    if settings.augment.voice:
        frames = in_voice(frames, random.uniform(1 - settings.augment.voice, 1 + settings.augment.voice), settings)
    if settings.augment.filter:
        frames = filtered(frames, settings.augment.filter, random)
    return masked(frames, settings, random)


def frames_of(samples: int, rate: int, settings: SoundInput) -> int:
    """Frames of a sound of so many samples at that rate, as a model reads it."""
    return frames_in(-(-samples * settings.rate // rate), settings)


def spoken_otherwise(
    samples: Samples, rate: int, settings: SoundAugmentSettings, random: np.random.Generator
) -> tuple[Samples, int]:
    """(samples, rate) with noise, and of another speed: who takes more samples for a second hears faster (and higher)
    speech."""
    if settings.noise:
        loudness = float(np.sqrt(np.mean(np.square(samples))))
        noise = random.normal(0, 1, len(samples)).astype(np.float32)
        samples = samples + np.float32(random.uniform(0, settings.noise) * loudness) * noise
    if settings.speed:
        rate = _rounded(rate * random.uniform(1 - settings.speed, 1 + settings.speed))
    return samples, rate


def masked(
    frames: Float[Tensor, "frames mels"], settings: SoundInput, random: np.random.Generator
) -> Float[Tensor, "frames mels"]:
    """Frames with stretches of time and bands of frequencies set to the mean (SpecAugment)."""
    augment = settings.augment
    made, mean = frames.clone(), frames.mean()
    number, mels = frames.shape
    longest = round(augment.time_width / 1000 * settings.rate / hop_of(settings))
    for _ in range(augment.time_masks):
        width = int(random.integers(0, min(longest, number // MOST_BLOTTED) + 1))
        start = int(random.integers(0, number - width + 1))
        made[start : start + width] = mean
    for _ in range(augment.frequency_masks):
        width = int(random.integers(0, augment.frequency_width + 1))
        start = int(random.integers(0, mels - width + 1))
        made[:, start : start + width] = mean
    return made


def _rounded(rate: float) -> int:
    """To whole hundreds: rates without a common divisor would ask for thousands of filters."""
    return max(round(rate / 100) * 100, 100)
