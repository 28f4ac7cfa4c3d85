"""The convolutional encoder: the cells or columns of a network's feature map of an image are its places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from seq2see.cells import CellSettings
from seq2see.data.image_files import ImageInput
from seq2see.dropout import dropout
from seq2see.encoders.backbones import Backbone, BatchNorm, backbone_symbols, build_backbone, keep_statistics
from seq2see.encoders.backbones.base import SMALL, SMALLEST, BackboneSettings, unknown_backbone
from seq2see.encoders.base import Encoded, Encoder, InputInfo, encoders
from seq2see.encoders.dense import check_width
from seq2see.encoders.layers import RecurrentLayers, flip_columns, grid_mask, masked_mean, read_rows
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import Places
from seq2see.modalities.image import Pictures
from seq2see.registry import Problem
from seq2see.settings.base import Share, Size, no_effect
from seq2see.settings.columns import EncoderSettings
from seq2see.symbols import Symbols, default_symbols

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class RowSettings(CellSettings):
    """A recurrent network along each row of the feature map, so that places know their neighbours."""

    bidirectional: bool = Field(True, description="both ways along each row, the states joined")


class ConvolutionalEncoderSettings(BackboneSettings, EncoderSettings):
    """h_1 .. h_M: a convolutional network makes a map of a picture, whose cells are the places."""

    reads: ClassVar[tuple[str, ...]] = ("image",)
    kind: Literal["convolutional"] = Field("convolutional", description="convolutions over a picture")
    places: Literal["grid", "columns", "vector", "flat"] = Field(
        "grid",
        description="every cell of the map is a place; the cells of each column are joined (lines of text); "
        "their mean is the only place; or all are joined into one, which W_p reads",
    )
    size: Size = Field(512, description="numbers of each place, W_p times a cell of the map")
    dropout: Share = Field(0.0, description="on the places, before `recurrent` reads them")
    recurrent: RowSettings | None = Field(
        None, description="grid, columns: a recurrent network over each row of places; not given: none"
    )

    @property
    def places_size(self) -> int:
        along = self.recurrent
        return self.size if along is None else along.size * (2 if along.bidirectional else 1)

    @property
    def layout(self) -> str:
        return {"grid": "grid", "columns": "frames"}.get(self.places, "vector")

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        columns = {name: recipe.inputs[name] for name in recipe.read_by.get(path, [])}
        images = {name: column for name, column in columns.items() if isinstance(column, ImageInput)}
        for name, image in images.items():
            yield from self._check_image(name, image, path)
        if self.places == "flat":
            yield from check_width(recipe, path)
        if images:
            yield from self.unused_backbone(path)
            if self.layout == "vector" and self.recurrent is not None:
                reason = f"{path}.places {self.places}: a picture is one place"
                yield Problem(f"{path}.recurrent", reason, "no-effect", no_effect=True)

    def _check_image(self, name: str, image: ImageInput, path: str) -> Iterator[Problem]:
        yield from self.check_shrinking(name, image, path)
        yield from self.check_backbone(name, image, path)
        if self.frozen:
            reason = f"{path}.tuned is false: each picture is read once, and its map kept"
            yield from no_effect(image.augment, f"inputs.{name}.augment", type(image.augment).model_fields, reason)
        if unknown_backbone(self.backbone) is not None:
            return
        if self.backbone == SMALL and (image.height < SMALLEST or 0 < image.width < SMALLEST):
            message = f"{image.height} x {image.width} pixels; allowed: at least {SMALLEST} each"
            yield Problem(f"inputs.{name}.height", message, "image-size")
        yield from self.check_pooled(path)
        if self.frozen and not image.width:
            message = f"0, and kept maps have one size; allowed: a width, or {path}.tuned: true"
            yield Problem(f"inputs.{name}.width", message, "backbone")


@encoders.register("convolutional")
class ConvolutionalEncoder(Encoder):
    """Places are the cells of the map, row by row, or its columns, projected by W_p and, if asked for, read by a
    recurrent network along each row; the summary is their mean.

    The map of a frozen network is standardised first, channel by channel, by the statistics of training: after a ReLU
    all images share a large component, which would saturate s_0 = tanh(W summary) and make them all alike.

    >>> encoder = ConvolutionalEncoder(ConvolutionalEncoderSettings(size=8, channels=[4, 4]), channels=1)
    >>> encoder(torch.zeros(2, 1, 16, 24), torch.tensor([24, 12])).places.mask.sum(1)
    tensor([24, 12])
    """

    Settings = ConvolutionalEncoderSettings

    def __init__(self, settings: ConvolutionalEncoderSettings, *, channels: int = 3, height: int = 0, width: int = 0):
        super().__init__()
        self.size = self.summary_size = settings.places_size
        self.layout = cast(LayoutKind, settings.layout)
        self.settings, self.same_width = settings, width > 0
        self.backbone: Backbone = build_backbone(settings, channels)
        self.centred = BatchNorm(self.backbone.size, affine=False) if settings.frozen else nn.Identity()
        self.W_p = nn.Linear(self.backbone.size * self._cells_per_place(channels, height, width), settings.size)
        along = settings.recurrent
        self.layers = (
            None if along is None else RecurrentLayers(along, settings.size, bidirectional=along.bidirectional)
        )
        if settings.frozen:
            self.backbone.requires_grad_(False).eval()

    @classmethod
    def build(cls, settings: ConvolutionalEncoderSettings, info: InputInfo) -> ConvolutionalEncoder:
        return cls(settings, channels=info.channels, height=info.height, width=info.width)

    def _cells_per_place(self, channels: int, height: int, width: int) -> int:
        """How many cells of the map make up a place, found by encoding an empty image of that size."""
        if self.settings.places not in ("columns", "flat"):
            return 1
        training = self.backbone.training
        self.backbone.eval()
        with torch.no_grad():
            wide = max(width, self.backbone.least)
            rows, columns = self.backbone(torch.zeros(1, channels, height, wide)).shape[-2:]
        self.backbone.train(training)
        return int(rows * columns) if self.settings.places == "flat" else int(rows)

    @property
    def frozen(self) -> Backbone | None:
        return self.backbone if self.settings.frozen else None

    @property
    def vectors(self) -> nn.Module:
        return self.centred

    def frozen_features(self, column: Pictures) -> Float[Tensor, "batch size rows columns"]:
        assert column.pixels is not None
        return self.map_of(column.pixels)

    def fetch(self) -> None:
        self.backbone.fetch()

    def train(self, mode: bool = True) -> ConvolutionalEncoder:
        super().train(mode)
        keep_statistics(self.backbone, self.settings)
        return self

    def read(self, column: Pictures, *, maps: bool = False) -> Encoded:
        if column.maps is not None:
            whole = torch.full_like(column.widths, column.maps.shape[-1])
            return self._encode(column.maps, whole, leftward=column.leftward)
        assert column.pixels is not None
        return self(column.pixels, column.widths, leftward=column.leftward)  # type: ignore[no-any-return]

    def forward(self, pixels: Tensor, widths: Tensor | None = None, *, leftward: bool = False) -> Encoded:
        """pixels: (batch, channels, height, width), from 0 to 255; widths: (batch,), real pixels of each row of pixels;
        leftward: columns are counted from the right."""
        if widths is None:
            widths = torch.full((pixels.shape[0],), pixels.shape[-1], device=pixels.device)
        lacking = max(self.backbone.least - pixels.shape[-1], 0)
        if lacking:
            pixels = pad(pixels.float(), (0, lacking, 0, 0), mode="replicate")
        traced = torch.compiler.is_exporting()
        if self.same_width if traced else bool((widths == pixels.shape[-1]).all()):
            maps = self.map_of(pixels)
            return self._encode(maps, torch.full_like(widths, maps.shape[-1]), leftward=leftward)
        return self._encode(*self.backbone.padded(pixels.float(), widths), leftward=leftward)

    def map_of(self, pixels: Tensor) -> Float[Tensor, "batch size rows columns"]:
        """The backbone's feature maps of images."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.settings.frozen):
            maps: Tensor = self.backbone(pixels.float())
        return maps

    def _encode(
        self, maps: Float[Tensor, "batch size rows columns"], real: Int[Tensor, " batch"], *, leftward: bool
    ) -> Encoded:
        """real: the number of real columns of each map."""
        maps = self.centred(maps.float())
        if leftward:
            maps = flip_columns(maps, real)
        if self.settings.places == "columns":
            maps = maps.flatten(1, 2)[:, :, None]
        rows, columns = maps.shape[-2:]
        mask = grid_mask(rows, columns, real)
        cells = maps.flatten(2).transpose(1, 2)
        if self.settings.places == "vector":
            cells, mask = masked_mean(cells, mask)[:, None], mask[:, :1]
        elif self.settings.places == "flat":
            cells, mask = cells.flatten(1)[:, None], mask[:, :1]
        states = dropout(self.W_p(cells), self.settings.dropout, self.training)
        if self.layers is not None:
            states = read_rows(self.layers, states, mask, rows)
        layout = Layout(self.layout, (rows, columns) if self.layout == "grid" else (), leftward)
        return Encoded(Places(states, mask, layout), masked_mean(states, mask))

    def equations(self) -> list[str]:
        settings = self.settings
        how = "frozen" if settings.frozen else "learned with the rest"
        cells = {
            "grid": "m = its map of the picture, cells m_1 .. m_M row by row",
            "columns": "m_1 .. m_M = the columns of its map of the picture, the cells of each joined",
            "vector": "m_1 = the mean of its map of the picture: one place",
            "flat": "m_1 = all cells of its map of the picture, concatenated: one place",
        }
        lines = [f"convolutional network {settings.backbone}, {how}", cells[settings.places]]
        if settings.frozen:
            lines.append("m_j becomes (m_j - mean) / deviation, channel by channel, over the pictures trained on")
        along = settings.recurrent
        if along is None or self.layers is None:
            return [*lines, "h_j = W_p m_j + b_p;  summary = the mean of the h_j"]
        step = f"f_j = {along.cell}(f_{{j-1}}, x_j)"
        if along.bidirectional:
            step = f"h_j = [f_j; g_j],  {step},  g_j = {along.cell}(g_{{j+1}}, x_j), along each row"
        else:
            step = f"h_j = f_j,  {step}, along each row"
        layers = [f"{along.layers} layers, each reading the h_j of the one below"] if along.layers > 1 else []
        lines += ["x_j = W_p m_j + b_p", step, *layers, "summary = the mean of the h_j"]
        return [*lines, f"{along.cell}: {self.layers.cell.equation()}"]

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | backbone_symbols(self.backbone)
