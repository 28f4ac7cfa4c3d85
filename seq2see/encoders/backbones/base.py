"""What every backbone is: pixels in, a map out; and how pixels are scaled before a pre-trained one reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from seq2see.recipe.backbone_settings import BackboneSettings

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's red, green and blue, from 0 to 1: what networks trained on it have been shown."""


class Backbone(nn.Module):
    """Pixels from 0 to 255 to a map: (batch, channels, height, width) -> (batch, size, rows, columns).

    least: pixels on a side below which nothing would be left of a picture; narrower ones are continued to the right.
    """

    size: int
    least: int = 1

    def fetch(self) -> None:
        """Take the weights it was trained with before, where it was."""

    def forward(self, pixels: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch size rows columns"]:
        raise NotImplementedError

    def padded(
        self, pixels: Float[Tensor, "batch channels height width"], widths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch size rows columns"], Int[Tensor, " batch"]]:
        """Maps of pictures of which so many columns of pixels are real, and how many of their own are: those in which
        any real pixel lies."""
        found: Tensor = self(pixels)
        share = widths / pixels.shape[-1]
        return found, torch.ceil(share * found.shape[-1] - 1e-4).clamp(min=1).long()


class Scaling(nn.Module):
    """(x / 255 - mean) / deviation, channel by channel. Kept with the weights, of which it is a part: they mean nothing
    to pixels scaled otherwise, and what is kept of pictures on disk goes by both.

    >>> Scaling([0.5], [0.25])(torch.tensor([[[[0.0, 255.0]]]])).flatten().tolist()
    [-2.0, 2.0]
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("deviation", torch.tensor(deviation))

    def forward(self, pixels: Float[Tensor, "batch channels height width"]) -> Tensor:
        scaled = (pixels / 255 - self.mean[:, None, None]) / self.deviation[:, None, None]
        return scaled.contiguous(memory_format=torch.channels_last)


class BatchNorm(nn.BatchNorm2d):
    """Normalisation over the batch; where that is a single number for each map, by what it has seen before."""

    def forward(self, states: Tensor) -> Tensor:
        if self.training and states.numel() == states.shape[1]:
            return nn.functional.batch_norm(
                states, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(states)


def hold(backbone: Backbone, settings: BackboneSettings) -> None:
    """To be called while a model learns. Normalisation must not go by the batch it happens to see, and soon forget what
    it was trained with: a frozen backbone stays as it is, one that is tuned keeps the means and deviations of its
    pre-trained weights."""
    if settings.frozen:
        backbone.eval()
    elif settings.pretrained:
        for module in backbone.modules():
            if isinstance(module, _BatchNorm):
                module.eval()


def maps_last(network: Any) -> Any:
    """The network with its convolutions laid out as they are fastest on most machines; what it gives is the same."""
    return network.to(memory_format=torch.channels_last)
