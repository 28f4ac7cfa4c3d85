"""What moves in a clip: convolutions over neighbouring frames as well as over neighbouring pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import relu

from seq2see.encoders.normalised import groups_of

STILL = 0.01
"""Deviations of pixels, from -1 to 1, below which nothing moves: what is left is a camera's noise."""


class Motion(nn.Module):
    """Levels of 3-D convolution, normalisation and relu: (batch, frames, channels, height, width) -> (batch, frames,
    size, rows, columns). Each level halves height and width by its stride, the first with a wider kernel, and sees
    `spans` frames; the number of frames stays.

    Each frame is normalised for itself and frames that are not real are zeros at every level, so that a clip's map
    does not depend on the clips beside it.

    >>> Motion(1, [4, 8], [3, 1])(torch.zeros(2, 5, 1, 16, 24), torch.ones(2, 5, dtype=torch.bool)).shape
    torch.Size([2, 5, 8, 4, 6])
    """

    def __init__(self, channels: int, widths: Sequence[int], spans: Sequence[int]):
        super().__init__()
        below = [channels, *widths]
        self.convolutions = nn.ModuleList(
            nn.Conv3d(
                below[level],
                width,
                (span, _kernel(level), _kernel(level)),
                stride=(1, 2, 2),
                padding=(span // 2, _kernel(level) // 2, _kernel(level) // 2),
                bias=False,
            )
            for level, (width, span) in enumerate(zip(widths, spans, strict=True))
        )
        whole: Any = self.convolutions
        whole.to(memory_format=torch.channels_last_3d)  # two to four times as fast on most machines
        self.norms = nn.ModuleList(nn.GroupNorm(groups_of(width), width) for width in widths)
        self.size = widths[-1]

    def forward(
        self, pixels: Float[Tensor, "batch frames channels height width"], mask: Bool[Tensor, "batch frames"]
    ) -> Float[Tensor, "batch frames size rows columns"]:
        """pixels: from -1 to 1."""
        real = mask[:, :, None, None, None]
        states = pixels * real
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            made = convolution(states.transpose(1, 2).contiguous(memory_format=torch.channels_last_3d)).transpose(1, 2)
            batch, frames = made.shape[:2]
            states = relu(norm(made.reshape(batch * frames, *made.shape[2:]))).unflatten(0, (batch, frames)) * real
        return states


def changes(
    pixels: Float[Tensor, "batch frames channels height width"], mask: Bool[Tensor, "batch frames"]
) -> Float[Tensor, "batch frames channels height width"]:
    """(x_t - mean_t x_t) / s, s the deviation of all of a clip's pixels from their means: what stays the same through a
    clip is gone, and small movements count as much as large ones. A clip in which nothing moves is zeros.

    >>> changes(torch.tensor([1.0, 3.0]).view(1, 2, 1, 1, 1), torch.ones(1, 2, dtype=torch.bool)).flatten().tolist()
    [-1.0, 1.0]
    """
    real = mask[:, :, None, None, None]
    count = real.sum(1, keepdim=True).clamp(min=1)
    moved = (pixels - (pixels * real).sum(1, keepdim=True) / count) * real
    spread = (moved.square().sum((1, 2, 3, 4), keepdim=True) / (count * pixels[0, 0].numel())).sqrt()
    return moved / spread.clamp(min=STILL)


def _kernel(level: int) -> int:
    return 3 if level else 5
