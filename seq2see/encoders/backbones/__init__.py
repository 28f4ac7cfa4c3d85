"""Networks that make a map of a picture: a small one of our own, and pre-trained ones."""

from __future__ import annotations

from seq2see.encoders.backbones.base import Backbone, BatchNorm, hold
from seq2see.encoders.backbones.build import MAKERS, backbone_of

__all__ = ["MAKERS", "Backbone", "BatchNorm", "backbone_of", "hold"]
