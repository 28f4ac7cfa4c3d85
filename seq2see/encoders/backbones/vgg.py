"""VGG-16 (Simonyan & Zisserman 2015), whose parameters have the names that torchvision's published weights have."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from seq2see.encoders.backbones.base import Backbone, Scaling, maps_last
from seq2see.encoders.backbones.weights import take

LEVELS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class Vgg16(Backbone):
    """512 maps of 14 x 14 from a picture of 224 x 224: those before the last pooling, at which captions were first
    looked for (Xu et al. 2015).

    weights: a file of them; None: it begins with weights at random, like any other part of a model.
    """

    size = LEVELS[-1][-1]
    least = 32

    def __init__(self, weights: Path | None = None):
        super().__init__()
        self.scaling = Scaling()
        self.network = nn.ModuleDict({"features": maps_last(nn.Sequential(*_layers()))})
        self.weights = weights

    def fetch(self) -> None:
        if self.weights is not None:
            take(self.network, self.weights, head=("classifier.",))

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.network["features"](self.scaling(pixels))
        return found


def _layers() -> list[nn.Module]:
    """Numbered as they are published: convolution and relu in turn, a pooling between levels."""
    made: list[nn.Module] = []
    below = 3
    for widths in LEVELS:
        made += [nn.MaxPool2d(2)] if made else []
        for width in widths:
            conv = nn.Conv2d(below, width, 3, padding=1)
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            made += [conv, nn.ReLU()]
            below = width
    return made
