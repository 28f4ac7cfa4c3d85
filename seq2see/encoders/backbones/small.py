"""A small network of our own, trained with the rest of a model."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from seq2see.encoders.backbones.base import Backbone
from seq2see.encoders.layers import norm_groups
from seq2see.settings.encoders import BackboneSettings


class Level(nn.Sequential):
    """Convolution, normalisation, relu and pooling, of the height alone or of both sides.

    Normalised over groups of maps, not over the batch: a picture's map does not depend on those beside it.
    """

    def __init__(self, below: int, above: int, *, halved: str):
        self.across = 2 if halved == "both" else 1
        super().__init__(
            nn.Conv2d(below, above, 3, padding=1, bias=False),
            nn.GroupNorm(norm_groups(above), above),
            nn.ReLU(),
            nn.MaxPool2d((2, self.across), ceil_mode=True),
        )

    def padded(self, states: Tensor, widths: list[int]) -> tuple[Tensor, list[int]]:
        """The same of pictures that end after so many columns, beyond which there are zeros, as beyond any edge."""
        convolved, normalise, most = self[0](states), self[1], states.shape[-1]
        ended = [
            pad(normalise(one[None, ..., :width]), (0, most - width))
            for one, width in zip(convolved, widths, strict=True)
        ]
        return self[3](relu(torch.cat(ended))), [-(-width // self.across) for width in widths]


class Small(Backbone):
    """Levels one behind the other."""

    def __init__(self, channels: int, settings: BackboneSettings):
        super().__init__()
        widths = [channels, *settings.channels]
        pooled = settings.pooled or ["both"] * len(settings.channels)
        self.levels = nn.ModuleList(
            Level(below, above, halved=halved) for below, above, halved in zip(widths, widths[1:], pooled, strict=False)
        )
        self.size = widths[-1]

    def forward(self, pixels: Tensor) -> Tensor:
        states = pixels / 127.5 - 1
        for level in self.levels:
            states = level(states)
        return states

    def padded(
        self, pixels: Float[Tensor, "batch channels height width"], widths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch size rows columns"], Int[Tensor, " batch"]]:
        """What each picture gives by itself, to the last figure: how wide the others are makes no difference."""
        most, left = pixels.shape[-1], widths.tolist()
        real = torch.arange(most, device=pixels.device) < widths[:, None]
        states = (pixels / 127.5 - 1) * real[:, None, None]
        for level in self.levels:
            assert isinstance(level, Level)
            states, left = level.padded(states, left)
        return states, torch.tensor(left, device=widths.device)
