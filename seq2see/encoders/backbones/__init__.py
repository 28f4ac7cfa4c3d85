"""Backbones turn images into feature maps: a small network of our own, and pre-trained ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from seq2see.encoders.backbones.base import (
    SMALL,
    Backbone,
    BackboneSettings,
    BatchNorm,
    Small,
    backbone_symbols,
    keep_statistics,
    unknown_backbone,
)
from seq2see.encoders.backbones.pretrained import EfficientNetLite, ResNet, Timm, Torchvision, Vgg16
from seq2see.errors import UserError

__all__ = ["MAKERS", "PACKAGES", "Backbone", "BatchNorm", "backbone_symbols", "build_backbone", "keep_statistics"]

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


def build_backbone(settings: BackboneSettings, channels: int) -> Backbone:
    """The backbone of the settings' name; a UserError where it is unknown or cannot read such images."""
    name = settings.backbone
    if name == SMALL:
        return Small(channels, settings)
    problem = unknown_backbone(name)
    if problem is not None:
        raise UserError(f"encoder.backbone: {problem}")
    if channels != 3:
        raise UserError(f"encoder.backbone: {name} reads pictures in colour, got {channels} channel; set colour: rgb")
    weights = None if settings.weights is None else Path(settings.weights)
    package, _, network = name.partition(":")
    return PACKAGES[package](network, weights) if network else MAKERS[name](weights)
