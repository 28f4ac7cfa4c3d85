"""Sounds as files: opened with care, mixed to one channel, brought to one rate, changed at random while learning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.mel import frames_in, hop_of, log_mels
from seq2see.data.pictures import MediaError
from seq2see.data.resampling import Samples, resampled
from seq2see.data.voices import filtered, in_voice
from seq2see.data.wav import missing
from seq2see.errors import imported
from seq2see.recipe.sound_settings import SoundAugmentSettings, SoundInput

MOST_BLOTTED = 4
"""A mask takes at most one part in so many of a sound, however short it is."""

LOWEST, HIGHEST = 1_000, 384_000
"""Samples a second of files that are read; outside of them a file's head is damaged, or it holds no sound."""


def read_sound(
    path: str | Path, settings: SoundInput, random: np.random.Generator | None = None
) -> Float[Tensor, "frames mels"]:
    """One sound as frames of log-mel energies; `random`: changed as `augment` says."""
    samples, rate = decoded(path, settings)
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


def decoded(path: str | Path, settings: SoundInput) -> tuple[Samples, int]:
    """(samples (number,) from -1 to 1, their rate): the mean of the channels."""
    with _opened(path, settings) as file:
        said = file.frames
        try:
            samples = file.read(dtype="float32", always_2d=True).mean(1)
        except (RuntimeError, ValueError, OSError) as error:
            raise MediaError(f"damaged or cut short: {error}") from None
        rate = int(file.samplerate)
    if len(samples) < said:
        raise MediaError(f"damaged or cut short: {len(samples):,} of {said:,} samples could be read")
    if not np.isfinite(samples).all():
        raise MediaError("damaged: it holds samples that are no numbers")
    return samples, rate


def problem_of(path: str | Path, settings: SoundInput) -> str | None:
    """Why a sound cannot be used; None where it can. It is read to its end, so that nothing comes up later."""
    try:
        decoded(path, settings)
    except MediaError as error:
        return str(error)
    return None


def frames_of(path: str | Path, settings: SoundInput) -> int:
    """Frames of a sound as a model reads it; only the file's head is read."""
    with _opened(path, settings) as file:
        return frames_in(-(-file.frames * settings.rate // file.samplerate), settings)


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


@contextmanager
def _opened(path: str | Path, settings: SoundInput) -> Iterator[Any]:
    """The open file, looked at from outside: its rate and length, before anything is decoded."""
    soundfile = imported("soundfile", extra="sound")
    if Path(path).is_dir():
        raise MediaError("a folder, not a sound")
    if not Path(path).exists():
        raise MediaError("no such file")
    try:
        file = soundfile.SoundFile(str(path))
    except (soundfile.SoundFileError, TypeError, ValueError, OSError) as error:
        said = str(getattr(error, "error_string", error)).rstrip(".")
        raise MediaError(f"not a sound that libsndfile can read: {said}") from None
    with file:
        short = missing(path)
        if short is not None:
            raise MediaError(f"cut short: {short} that its head promises are there")
        if not file.frames:
            raise MediaError("a sound without any samples, of length zero")
        if not LOWEST <= file.samplerate <= HIGHEST:
            raise MediaError(f"{file.samplerate:,} samples a second; allowed: from {LOWEST:,} to {HIGHEST:,}")
        seconds = file.frames / file.samplerate
        if seconds > settings.longest:
            raise MediaError(f"{seconds:,.1f} s long; allowed: at most {settings.longest:g} s (`longest`)")
        yield file
