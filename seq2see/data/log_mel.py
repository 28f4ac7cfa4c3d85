"""Log-mel energies: how loud each band of frequencies is in each short window of a sound."""

from __future__ import annotations

from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from seq2see.data.sound_files import SoundInput

SILENCE = 1e-10
STEADY = 1e-5
"""A deviation below this is no variation: such a band becomes zero, not noise made large."""


def log_mels(samples: Float[Tensor, " samples"], settings: SoundInput) -> Float[Tensor, "frames mels"]:
    """log sum_f F_mf |X_tf|**2, X_t the spectrum of a Hann window; the end is filled up with silence, so that all of
    the sound is heard. What lies `range` dB below the loudest is as loud as that. Normalised as the settings say.

    >>> log_mels(torch.randn(16_000), SoundInput()).shape
    torch.Size([99, 80])
    """
    width, hop = window_of(settings), hop_of(settings)
    number = frames_in(len(samples), settings)
    filled = pad(samples, (0, (number - 1) * hop + width - len(samples)))
    size, filters = _filters(settings.mels, width, settings.rate)
    windows = filled.unfold(0, width, hop) * torch.hann_window(width)
    power = torch.fft.rfft(windows, n=size).abs().square()
    energies = power @ filters
    floor = max(float(energies.max()) * 10 ** (-settings.range / 10), SILENCE)
    return normalised(energies.clamp(min=floor).log(), settings.normalise)


def normalised(frames: Float[Tensor, "frames mels"], how: str) -> Float[Tensor, "frames mels"]:
    """Mean 0 and deviation 1 over a file: of each band, or of all of them as one."""
    if how == "none":
        return frames
    dims = [0] if how == "bands" else [0, 1]
    centred = frames - frames.mean(dims, keepdim=True)
    spread = centred.square().mean(dims, keepdim=True).sqrt()
    return torch.where(spread > STEADY, centred / spread.clamp(min=STEADY), torch.zeros(()))


def window_of(settings: SoundInput) -> int:
    """Samples in a window."""
    return max(round(settings.rate * settings.window / 1000), 2)


def hop_of(settings: SoundInput) -> int:
    """Samples from one window to the next."""
    return max(round(settings.rate * settings.hop / 1000), 1)


def frames_in(samples: int, settings: SoundInput) -> int:
    """Frames of a sound: at least one, the last one holding its end.

    >>> [frames_in(number, SoundInput()) for number in (1, 400, 401, 560, 561)]
    [1, 1, 2, 2, 3]
    """
    return 1 + max(-(-(samples - window_of(settings)) // hop_of(settings)), 0)


def filterbank(mels: int, size: int, rate: int) -> Float[Tensor, "frequencies mels"]:
    """Triangles that overlap by half, equally wide on the mel scale 2595 log10(1 + f / 700), from 0 to half the rate.

    size: samples of the spectrum, which has size / 2 + 1 frequencies.
    """
    edges = _edges(mels, rate)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    frequencies = torch.arange(size // 2 + 1, dtype=torch.float64)[:, None] * rate / size
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    return torch.minimum(rising, falling).clamp(min=0).float()


def middles_of(settings: SoundInput) -> Float[Tensor, " mels"]:
    """The frequency in the middle of each band, in Hz."""
    return _edges(settings.mels, settings.rate)[1:-1].float()


def mel(frequencies: Float[Tensor, " number"]) -> Float[Tensor, " number"]:
    """Hz on the mel scale."""
    return 2595 * torch.log10(1 + frequencies / 700)


def hertz(mels: Float[Tensor, " number"]) -> Float[Tensor, " number"]:
    """Mels in Hz."""
    return 700 * (10 ** (mels / 2595) - 1)


def _edges(mels: int, rate: int) -> Float[Tensor, " edges"]:
    top = float(mel(torch.tensor([rate / 2], dtype=torch.float64)))
    return hertz(torch.linspace(0, top, mels + 2, dtype=torch.float64))


@lru_cache(maxsize=8)
def _filters(mels: int, width: int, rate: int) -> tuple[int, Tensor]:
    """(size of the spectrum, filters): a power of two that holds the window, and leaves no band without a frequency."""
    size = 1 << (width - 1).bit_length()
    found = filterbank(mels, size, rate)
    while not bool((found.amax(0) > 0).all()):
        size *= 2
        found = filterbank(mels, size, rate)
    return size, found
