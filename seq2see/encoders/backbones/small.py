"""A small network of our own, trained with the rest of a model."""

from __future__ import annotations

from torch import Tensor, nn

from seq2see.encoders.backbones.base import Backbone
from seq2see.encoders.normalised import groups_of
from seq2see.recipe.encoder_settings import BackboneSettings


class Small(Backbone):
    """Levels of convolution, normalisation, relu and pooling.

    Normalised over groups of maps, not over the batch: a picture's map does not depend on those beside it.
    """

    def __init__(self, channels: int, settings: BackboneSettings):
        super().__init__()
        widths = [channels, *settings.channels]
        pooled = settings.pooled or ["both"] * len(settings.channels)
        levels: list[nn.Module] = []
        for below, above, halved in zip(widths, widths[1:], pooled, strict=False):
            pool = nn.MaxPool2d(2 if halved == "both" else (2, 1), ceil_mode=True)
            levels.append(
                nn.Sequential(
                    nn.Conv2d(below, above, 3, padding=1, bias=False),
                    nn.GroupNorm(groups_of(above), above),
                    nn.ReLU(),
                    pool,
                )
            )
        self.levels = nn.ModuleList(levels)
        self.size = widths[-1]

    def forward(self, pixels: Tensor) -> Tensor:
        states = pixels / 127.5 - 1
        for level in self.levels:
            states = level(states)
        return states
