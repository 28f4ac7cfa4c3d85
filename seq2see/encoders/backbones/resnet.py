"""Residual networks (He et al. 2016), whose parameters have the names that torchvision's published weights have."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn
from torch.nn.functional import relu

from seq2see.encoders.backbones.base import Backbone, BatchNorm, Scaling, maps_last
from seq2see.encoders.backbones.weights import take

WIDTHS = (64, 128, 256, 512)
BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3), "resnet50": (3, 4, 6, 3)}


class Basic(nn.Module):
    """x + conv3x3(relu(conv3x3(x))), each convolution normalised."""

    grows = 1

    def __init__(self, below: int, width: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = _conv(below, width, 3, stride), BatchNorm(width)
        self.conv2, self.bn2 = _conv(width, width, 3), BatchNorm(width)
        self.downsample = _shortcut(below, width * self.grows, stride)

    def forward(self, states: Tensor) -> Tensor:
        inner = relu(self.bn1(self.conv1(states)))
        return relu(self.bn2(self.conv2(inner)) + self.downsample(states))


class Bottleneck(nn.Module):
    """x + conv1x1(relu(conv3x3(relu(conv1x1(x))))), which reads few maps and gives four times as many."""

    grows = 4

    def __init__(self, below: int, width: int, stride: int):
        super().__init__()
        above = width * self.grows
        self.conv1, self.bn1 = _conv(below, width, 1), BatchNorm(width)
        self.conv2, self.bn2 = _conv(width, width, 3, stride), BatchNorm(width)
        self.conv3, self.bn3 = _conv(width, above, 1), BatchNorm(above)
        self.downsample = _shortcut(below, above, stride)

    def forward(self, states: Tensor) -> Tensor:
        inner = relu(self.bn1(self.conv1(states)))
        inner = relu(self.bn2(self.conv2(inner)))
        return relu(self.bn3(self.conv3(inner)) + self.downsample(states))


class Levels(nn.Module):
    """The network itself, without its classifier: one 32nd of a picture's height and width is left."""

    def __init__(self, block: type[Basic | Bottleneck], blocks: tuple[int, ...]):
        super().__init__()
        self.conv1, self.bn1 = _conv(3, WIDTHS[0], 7, 2), BatchNorm(WIDTHS[0])
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        below = WIDTHS[0]
        for number, (width, count) in enumerate(zip(WIDTHS, blocks, strict=True), start=1):
            strides = [1 if number == 1 else 2] + [1] * (count - 1)
            level = []
            for stride in strides:
                level.append(block(below, width, stride))
                below = width * block.grows
            self.add_module(f"layer{number}", nn.Sequential(*level))
        self.size = below

    def forward(self, scaled: Tensor) -> Tensor:
        states: Tensor = self.maxpool(relu(self.bn1(self.conv1(scaled))))
        for number in range(1, len(WIDTHS) + 1):
            states = self.get_submodule(f"layer{number}")(states)
        return states


class ResNet(Backbone):
    """resnet18 and resnet34 give 512 maps of 7 x 7 from a picture of 224 x 224, resnet50 gives 2,048.

    weights: a file of them; None: it begins with weights at random, like any other part of a model.
    """

    least = 32

    def __init__(self, name: str, weights: Path | None = None):
        super().__init__()
        self.scaling = Scaling()
        self.network: Levels = maps_last(Levels(Bottleneck if name == "resnet50" else Basic, BLOCKS[name]))
        self.size = self.network.size
        self.weights = weights

    def fetch(self) -> None:
        if self.weights is not None:
            take(self.network, self.weights, head=("fc.",))

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.network(self.scaling(pixels))
        return found


def _conv(below: int, above: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    made = nn.Conv2d(below, above, kernel, stride=stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(made.weight, mode="fan_out", nonlinearity="relu")
    return made


def _shortcut(below: int, above: int, stride: int) -> nn.Module:
    """What x goes through to meet what was made of it: nothing, where both have one shape."""
    if stride == 1 and below == above:
        return nn.Identity()
    return nn.Sequential(_conv(below, above, 1, stride), BatchNorm(above))
