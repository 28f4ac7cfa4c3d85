"""Output layers without symbols: y = f(V u + c), and how far that is from what it should be."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import linear

from seq2see.decoders.heads import Head
from seq2see.decoders.records import Ready, Step
from seq2see.encoders.dense import ACTIVATIONS


class NumbersHead(Head):
    """y = f(V u + c), u being the features; the loss of a row is the mean of (y_i - x_i) ** 2."""

    def __init__(self, features: int, numbers: int, *, output: str = "linear"):
        super().__init__()
        self.output = output
        self.V = nn.Parameter(torch.empty(numbers, features))
        nn.init.xavier_uniform_(self.V)
        self.c = nn.Parameter(torch.zeros(numbers))

    def numbers(self, step: Step) -> Float[Tensor, "rows numbers"]:
        return ACTIVATIONS[self.output](self.made(step.features)).float()

    def made(self, features: Float[Tensor, "rows size"]) -> Float[Tensor, "rows numbers"]:
        """The numbers before f."""
        return linear(features, self.V, self.c)

    def given(
        self, step: Step, ready: Ready, targets: Float[Tensor, "rows numbers"], *, mask: Bool[Tensor, " rows"]
    ) -> Float[Tensor, " real"]:
        """-(mean squared error) of each row: log P of a Gaussian around y, but for its scale."""
        return -(self.numbers(step) - targets).square().mean(-1)[mask]

    def loss(
        self,
        step: Step,
        ready: Ready,
        targets: Float[Tensor, "rows numbers"],
        *,
        mask: Bool[Tensor, " rows"],
        smoothing: float = 0.0,
        weights: Float[Tensor, " symbols"] | None = None,
    ) -> Float[Tensor, ""]:
        """The sum over rows of their mean squared error."""
        return -self.given(step, ready, targets, mask=mask).sum()


class PixelsHead(NumbersHead):
    """A picture by transposed convolutions: u becomes a small map, each level doubles its height and width.

    shape: channels, height and width of the picture; channels: maps of each level before the picture itself.
    """

    def __init__(
        self, features: int, shape: tuple[int, int, int], channels: Sequence[int], *, output: str, activation: str
    ):
        colours, height, width = shape
        scale = 1 << len(channels)
        small = (channels[0], height // scale, width // scale)
        super().__init__(features, prod(small), output=output)
        self.small, self.activation = small, activation
        widths = [*channels, colours]
        self.levels = nn.ModuleList(
            nn.ConvTranspose2d(a, b, kernel_size=4, stride=2, padding=1)
            for a, b in zip(channels, widths[1:], strict=True)
        )

    def made(self, features: Float[Tensor, "rows size"]) -> Float[Tensor, "rows numbers"]:
        pictures: Tensor = super().made(features).unflatten(1, self.small)
        for level in cast("list[nn.ConvTranspose2d]", list(self.levels)):
            pictures = level(ACTIVATIONS[self.activation](pictures))
        return pictures.flatten(1)
