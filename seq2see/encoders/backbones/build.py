"""The network that a recipe names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from seq2see.encoders.backbones.base import Backbone
from seq2see.encoders.backbones.pretrained import EfficientNetLite, ResNet, Timm, Torchvision, Vgg16
from seq2see.encoders.backbones.small import Small
from seq2see.errors import UserError
from seq2see.settings.encoders import SMALL, BackboneSettings, unknown_backbone

Maker = Callable[[Path | None], Backbone]

MAKERS: dict[str, Maker] = {
    "efficientnet-lite0": partial(EfficientNetLite, 0),
    "efficientnet-lite1": partial(EfficientNetLite, 1),
    "efficientnet-lite2": partial(EfficientNetLite, 2),
    "resnet18": partial(ResNet, "resnet18"),
    "resnet34": partial(ResNet, "resnet34"),
    "resnet50": partial(ResNet, "resnet50"),
    "vgg16": Vgg16,
}
PACKAGES: dict[str, Callable[[str, Path | None], Backbone]] = {"timm": Timm, "torchvision": Torchvision}


def backbone_of(settings: BackboneSettings, channels: int) -> Backbone:
    """The network a recipe names; a UserError says what it lacks."""
    name = settings.backbone
    if name == SMALL:
        return Small(channels, settings)
    wrong = unknown_backbone(name)
    if wrong is not None:
        raise UserError(f"encoder.backbone: {wrong}")
    if channels != 3:
        raise UserError(f"encoder.backbone: {name} reads pictures in colour, got {channels} channel; set colour: rgb")
    weights = None if settings.weights is None else Path(settings.weights)
    package, _, its = name.partition(":")
    return PACKAGES[package](its, weights) if its else MAKERS[name](weights)
