"""Other voices and rooms: the same speech from a longer or shorter vocal tract (Jaitly and Hinton 2013), and through
another filter (Nam et al. 2022)."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.mel import hertz, mel, middles_of
from seq2see.recipe.sound_settings import SoundInput

KNOTS = 5
"""Heights that are drawn for a filter, from the lowest band to the highest."""


def in_voice(frames: Float[Tensor, "frames mels"], higher: float, settings: SoundInput) -> Float[Tensor, "frames mels"]:
    """What was heard at frequency f is heard at `higher` * f: bands between two bands are mixed of both, and beyond the
    last one it is heard again."""
    middles = mel(middles_of(settings))
    source = mel(hertz(middles) / higher)
    place = ((source - middles[0]) / (middles[-1] - middles[0]) * (settings.mels - 1)).clamp(0, settings.mels - 1)
    below = place.floor().long().clamp(max=max(settings.mels - 2, 0))
    above = (below + 1).clamp(max=settings.mels - 1)
    share = place - below
    return frames[:, below] * (1 - share) + frames[:, above] * share


def filtered(
    frames: Float[Tensor, "frames mels"], amount: float, random: np.random.Generator
) -> Float[Tensor, "frames mels"]:
    """Frames with a curve added to each, which goes in straight lines from one chance height to the next."""
    mels = frames.shape[1]
    heights = random.uniform(-amount, amount, KNOTS)
    curve = np.interp(np.linspace(0, KNOTS - 1, mels), np.arange(KNOTS), heights)
    return frames + torch.from_numpy(curve.astype(np.float32))
