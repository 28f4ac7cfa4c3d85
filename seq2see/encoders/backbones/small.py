"""A small convolutional network that is trained with the rest of a model."""

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

    Normalised over groups of maps, not over the batch, so that an image does not depend on the others of its batch.
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
        """The level's output for images of these widths, with zeros beyond them; and the widths after it."""
        convolved, normalise, most = self[0](states), self[1], states.shape[-1]
        masked = [
            pad(normalise(image[None, ..., :width]), (0, most - width))
            for image, width in zip(convolved, widths, strict=True)
        ]
        return self[3](relu(torch.cat(masked))), [-(-width // self.across) for width in widths]


class Small(Backbone):
    """Levels one after the other."""

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
        """The map of each image exactly as if it were alone in its batch."""
        most, left = pixels.shape[-1], widths.tolist()
        real = torch.arange(most, device=pixels.device) < widths[:, None]
        states = (pixels / 127.5 - 1) * real[:, None, None]
        for level in self.levels:
            assert isinstance(level, Level)
            states, left = level.padded(states, left)
        return states, torch.tensor(left, device=widths.device)
