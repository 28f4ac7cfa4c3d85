"""Log-mel energies: how loud each band of frequencies is in each short window of a sound. NumPy, no torch."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy import ndarray

if TYPE_CHECKING:
    from seq2see.data.sound_files import SoundInput

SILENCE = 1e-10
STEADY = 1e-5
"""A deviation below this is no variation: such a band becomes zero, not noise made large."""


def log_mels(samples: Float[ndarray, " samples"], settings: SoundInput) -> Float[ndarray, "frames mels"]:
    """log sum_f F_mf |X_tf|**2, X_t the spectrum of a Hann window; the end is filled up with silence, so that all of
    the sound is heard. Energies are floored `range` dB below the loudest. Normalised as the settings say.

    >>> from seq2see.data.sound_files import SoundInput
    >>> log_mels(np.zeros(16_000, dtype=np.float32), SoundInput()).shape
    (99, 80)
    """
    width, hop = window_of(settings), hop_of(settings)
    number = frames_in(len(samples), settings)
    filled = np.pad(np.asarray(samples, dtype=np.float32), (0, (number - 1) * hop + width - len(samples)))
    size, filters = _filters(settings.mels, width, settings.rate)
    windows = np.lib.stride_tricks.sliding_window_view(filled, width)[::hop] * _hann(width)
    spectrum = np.fft.rfft(windows, n=size)
    power = spectrum.real**2 + spectrum.imag**2
    energies = np.asarray(power, dtype=np.float32) @ filters
    floor = max(float(energies.max()) * 10 ** (-settings.range / 10), SILENCE)
    return normalised(np.log(np.maximum(energies, np.float32(floor))), settings.normalise)


def normalised(frames: Float[ndarray, "frames mels"], how: str) -> Float[ndarray, "frames mels"]:
    """Mean 0 and deviation 1 over a file: of each band, or of all of them as one."""
    if how == "none":
        return frames
    axes = 0 if how == "bands" else (0, 1)
    centred = frames - frames.mean(axes, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axes, keepdims=True))
    return np.where(spread > STEADY, centred / np.maximum(spread, STEADY), 0).astype(np.float32)


def window_of(settings: SoundInput) -> int:
    """Samples in a window."""
    return max(round(settings.rate * settings.window / 1000), 2)


def hop_of(settings: SoundInput) -> int:
    """Samples from one window to the next."""
    return max(round(settings.rate * settings.hop / 1000), 1)


def frames_in(samples: int, settings: SoundInput) -> int:
    """Frames of a sound: at least one, the last one holding its end.

    >>> from seq2see.data.sound_files import SoundInput
    >>> [frames_in(number, SoundInput()) for number in (1, 400, 401, 560, 561)]
    [1, 1, 2, 2, 3]
    """
    return 1 + max(-(-(samples - window_of(settings)) // hop_of(settings)), 0)


def filterbank(mels: int, size: int, rate: int) -> Float[ndarray, "frequencies mels"]:
    """Triangles that overlap by half, equally wide on the mel scale 2595 log10(1 + f / 700), from 0 to half the rate.

    size: samples of the spectrum, which has size / 2 + 1 frequencies.
    """
    edges = _edges(mels, rate)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    frequencies = np.arange(size // 2 + 1)[:, None] * rate / size
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    return np.asarray(np.minimum(rising, falling).clip(min=0), dtype=np.float32)


def centre_frequencies(settings: SoundInput) -> Float[ndarray, " mels"]:
    """The frequency in the middle of each band, in Hz."""
    return _edges(settings.mels, settings.rate)[1:-1]


def mel(frequencies: Float[ndarray, " number"]) -> Float[ndarray, " number"]:
    """Hz on the mel scale."""
    return 2595 * np.log10(1 + frequencies / 700)


def hertz(mels: Float[ndarray, " number"]) -> Float[ndarray, " number"]:
    """Mels in Hz."""
    return np.asarray(700 * (10 ** (mels / 2595) - 1))


def _edges(mels: int, rate: int) -> Float[ndarray, " edges"]:
    top = float(mel(np.array([rate / 2]))[0])
    return hertz(np.linspace(0, top, mels + 2))


@lru_cache(maxsize=8)
def _hann(width: int) -> Float[ndarray, " width"]:
    """The periodic Hann window."""
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(width) / width)).astype(np.float32)


@lru_cache(maxsize=8)
def _filters(mels: int, width: int, rate: int) -> tuple[int, Float[ndarray, "frequencies mels"]]:
    """(size of the spectrum, filters): a power of two that holds the window, and leaves no band without a frequency."""
    size = 1 << (width - 1).bit_length()
    found = filterbank(mels, size, rate)
    while not (found.max(0) > 0).all():
        size *= 2
        found = filterbank(mels, size, rate)
    return size, found
