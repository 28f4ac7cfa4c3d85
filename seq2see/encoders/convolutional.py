"""h_1 .. h_M: a convolutional network makes a map of a picture; its cells are the places."""

from __future__ import annotations

from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from seq2see.data.image import Pictures
from seq2see.encoders.backbones import Backbone, backbone_of, hold
from seq2see.encoders.base import Encoded, Encoder, Material, encoders
from seq2see.encoders.means import masked_mean
from seq2see.memory import Layout, LayoutKind, Places
from seq2see.recipe.schema import ConvolutionalEncoderSettings


@encoders.register("convolutional")
class ConvolutionalEncoder(Encoder):
    """Places are the cells of the map, row by row, each through W_p; the summary is their mean.

    >>> encoder = ConvolutionalEncoder(ConvolutionalEncoderSettings(size=8, channels=[4, 4]), channels=1)
    >>> encoder(torch.zeros(2, 1, 16, 24), torch.tensor([24, 12])).places.mask.sum(1)
    tensor([24, 12])
    """

    def __init__(self, settings: ConvolutionalEncoderSettings, *, channels: int = 3, height: int = 0, width: int = 0):
        super().__init__()
        self.size = self.summary_size = settings.size
        self.layout = cast(LayoutKind, settings.layout)
        self.settings = settings
        self.backbone: Backbone = backbone_of(settings, channels)
        cells = self._cells(channels, height, width) if settings.places == "flat" else 1
        self.W_p = nn.Linear(self.backbone.size * cells, settings.size)
        if settings.frozen:
            self.backbone.requires_grad_(False)

    @classmethod
    def build(cls, settings: ConvolutionalEncoderSettings, material: Material) -> ConvolutionalEncoder:
        return cls(settings, channels=material.channels, height=material.height, width=material.width)

    def _cells(self, channels: int, height: int, width: int) -> int:
        """Cells of the map of a picture of that size: one is read to see."""
        learning = self.backbone.training
        self.backbone.eval()
        with torch.no_grad():
            wide = max(width, self.backbone.least)
            rows, columns = self.backbone(torch.zeros(1, channels, height, wide)).shape[-2:]
        self.backbone.train(learning)
        return int(rows * columns)

    @property
    def frozen(self) -> Backbone | None:
        return self.backbone if self.settings.frozen else None

    def made_once(self, column: Pictures) -> Float[Tensor, "batch size rows columns"]:
        assert column.pixels is not None
        return self.map_of(column.pixels)

    def fetch(self) -> None:
        self.backbone.fetch()

    def train(self, mode: bool = True) -> ConvolutionalEncoder:
        super().train(mode)
        hold(self.backbone, self.settings)
        return self

    def read(self, column: Pictures, *, maps: bool = False) -> Encoded:
        if column.maps is not None:
            return self._placed(column.maps, None)
        assert column.pixels is not None
        return self(column.pixels, column.widths)  # type: ignore[no-any-return]

    def forward(self, pixels: Tensor, widths: Tensor | None = None) -> Encoded:
        """pixels: (batch, channels, height, width), from 0 to 255; widths: (batch,), real pixels across."""
        lacking = max(self.backbone.least - pixels.shape[-1], 0)
        if lacking:
            widths = widths if widths is not None else torch.full((len(pixels),), pixels.shape[-1]).to(pixels.device)
            pixels = pad(pixels.float(), (0, lacking, 0, 0), mode="replicate")
        return self._placed(self.map_of(pixels), None if widths is None else (widths / pixels.shape[-1]))

    def map_of(self, pixels: Tensor) -> Float[Tensor, "batch size rows columns"]:
        """What the backbone makes of pictures."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.settings.frozen):
            found: Tensor = self.backbone(pixels.float())
        return found

    def _placed(self, found: Float[Tensor, "batch size rows columns"], share: Tensor | None) -> Encoded:
        """share: (batch,), of the columns of each map that are real."""
        rows, columns = found.shape[-2:]
        mask = _real(found, share)
        cells = found.flatten(2).transpose(1, 2)
        if self.settings.places == "vector":
            cells, mask = masked_mean(cells, mask)[:, None], mask[:, :1]
        elif self.settings.places == "flat":
            cells, mask = cells.flatten(1)[:, None], mask[:, :1]
        states = dropout(self.W_p(cells), self.settings.dropout, self.training)
        layout = Layout("grid", (rows, columns)) if self.layout == "grid" else Layout("vector")
        return Encoded(Places(states, mask, layout), masked_mean(states, mask))

    @classmethod
    def equations(cls, settings: ConvolutionalEncoderSettings) -> list[str]:
        how = "frozen" if settings.frozen else "learned with the rest"
        made = {
            "grid": "m = its map of the picture, cells m_1 .. m_M row by row",
            "vector": "m_1 = the mean of its map of the picture: one place",
            "flat": "m_1 = all cells of its map of the picture, one behind the other: one place",
        }
        return [
            f"convolutional network {settings.backbone}, {how}",
            made[settings.places],
            "h_j = W_p m_j + b_p;  summary = the mean of the h_j",
        ]


def _real(found: Tensor, share: Tensor | None) -> Bool[Tensor, "batch places"]:
    """Cells over padding alone are no places: a column counts if any real pixel lies in it."""
    batch, _, rows, columns = found.shape
    mask = torch.ones(batch, rows, columns, dtype=torch.bool, device=found.device)
    if share is not None:
        real = torch.ceil(share * columns - 1e-4).clamp(min=1)
        mask &= (torch.arange(columns, device=found.device) < real[:, None])[:, None]
    return mask.flatten(1)
