"""Networks that make a map of a picture: a small one of our own, and pre-trained ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from seq2see.errors import UserError, nearest
from seq2see.recipe.schema import ConvolutionalEncoderSettings


class Backbone(nn.Module):
    """Pixels from 0 to 255 to a map: (batch, channels, height, width) -> (batch, size, rows, columns)."""

    size: int

    def fetch(self) -> None:
        """Take the weights it was trained with before, where it was."""

    def forward(self, pixels: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch size rows columns"]:
        raise NotImplementedError


class Small(Backbone):
    """Levels of convolution, normalisation, relu and pooling, trained with the rest.

    Normalised over groups of maps, not over the batch: a picture's map does not depend on those beside it.
    """

    def __init__(self, channels: int, settings: ConvolutionalEncoderSettings):
        super().__init__()
        widths = [channels, *settings.channels]
        pooled = settings.pooled or ["both"] * len(settings.channels)
        levels: list[nn.Module] = []
        for below, above, halved in zip(widths, widths[1:], pooled, strict=False):
            groups = next(number for number in (8, 4, 2, 1) if above % number == 0)
            pool = nn.MaxPool2d(2 if halved == "both" else (2, 1), ceil_mode=True)
            levels.append(
                nn.Sequential(
                    nn.Conv2d(below, above, 3, padding=1, bias=False), nn.GroupNorm(groups, above), nn.ReLU(), pool
                )
            )
        self.levels = nn.ModuleList(levels)
        self.size = widths[-1]

    def forward(self, pixels: Tensor) -> Tensor:
        states = pixels / 127.5 - 1
        for level in self.levels:
            states = level(states)
        return states


Maker = Callable[[ConvolutionalEncoderSettings, int], Backbone]


def _small(settings: ConvolutionalEncoderSettings, channels: int) -> Backbone:
    return Small(channels, settings)


def _efficientnet(settings: ConvolutionalEncoderSettings, channels: int) -> Backbone:
    from seq2see.encoders.efficientnet import EfficientNetLite  # late: an extra

    return EfficientNetLite()


MAKERS: dict[str, Maker] = {"small": _small, "efficientnet-lite0": _efficientnet}


def backbone_of(settings: ConvolutionalEncoderSettings, channels: int) -> Backbone:
    """The network a recipe names; a UserError says what it lacks."""
    name = settings.backbone
    if name not in MAKERS:
        allowed = ", ".join(MAKERS)
        raise UserError(f"encoder.backbone: unknown backbone '{name}'{nearest(name, MAKERS)}; allowed: {allowed}")
    if name != "small" and channels != 3:
        raise UserError(f"encoder.backbone: {name} reads pictures in colour, got {channels} channel; set colour: rgb")
    return MAKERS[name](settings, channels)


def imported(module: str, extra: str) -> Any:
    """A package of an extra, or an error that says how to get it."""
    from importlib import import_module

    from seq2see.errors import MissingExtra

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(module, extra) from error
