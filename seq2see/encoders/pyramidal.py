"""The pyramidal encoder: recurrent layers over frames, the lower ones over pairs of neighbours (Chan et al. 2016),
and convolutions below them, where a recipe asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from seq2see.cells import CellSettings
from seq2see.data.batches import Frames
from seq2see.encoders.backbones.base import Level
from seq2see.encoders.base import Encoded, Encoder, InputInfo, encoders
from seq2see.encoders.layers import LayerOutput, RecurrentLayers
from seq2see.errors import counted
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import Places
from seq2see.registry import Problem
from seq2see.settings.base import MOST_LAYERS, Layers, Size
from seq2see.settings.columns import EncoderSettings
from seq2see.symbols import Symbol, Symbols, default_symbols

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class PyramidalEncoderSettings(CellSettings, EncoderSettings):
    """h_1 .. h_M: recurrent layers over frames, of which the lower ones read pairs and so halve their number."""

    reads: ClassVar[tuple[str, ...]] = ("frames",)
    lies: ClassVar[str] = "frames"
    kind: Literal["pyramidal"] = Field("pyramidal", description="recurrent layers, each half as long as the one below")
    bidirectional: bool = Field(True, description="every layer reads in both directions, the states joined")
    layers: Layers = Field(3, description="number of layers")
    halvings: Annotated[int, Field(ge=0, le=30)] = Field(
        2,
        description="this many layers, from the lowest on, read neighbours joined in pairs; the others read "
        "them one by one",
    )

    convolutions: list[Size] = Field(
        [],
        max_length=MOST_LAYERS,
        description="maps of each level of convolutions that reads the frames first, over time and over the numbers of "
        "a frame; a level halves both, so for numbers in an order, such as the bands of a sound; not given: none",
    )

    @property
    def every(self) -> int:
        """Frames of a place."""
        return 1 << (self.halvings + len(self.convolutions))

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if self.halvings > self.layers and path in recipe.read_by:
            layers = counted(self.layers, "layer")
            message = f"{self.halvings} in {layers}, each of which halves once; allowed: at most {self.layers}"
            yield Problem(f"{path}.halvings", message, "halvings")


class FrameConvolutions(nn.ModuleList):
    """Levels of 3 x 3 convolution, normalisation, relu and the maximum of 2 x 2 neighbours, over frames and bands.

    A pattern is found wherever it is, a little earlier or higher, so that a voice is like another one. Each row is
    normalised over its real frames, and padding is zeros at every level: a row does not depend on its batch.

    >>> levels = FrameConvolutions([4, 8])
    >>> states, mask = levels(torch.zeros(2, 9, 6), torch.ones(2, 9, dtype=torch.bool))
    >>> states.shape, mask.shape, levels.width(6)
    (torch.Size([2, 3, 16]), torch.Size([2, 3]), 16)
    """

    def __init__(self, maps: list[int]):
        super().__init__(Level(below, above, halved="both") for below, above in zip([1, *maps], maps, strict=False))
        self.maps = maps

    def width(self, bands: int) -> int:
        """Numbers of each frame that comes out."""
        return self.maps[-1] * -(-bands // (1 << len(self.maps)))

    def forward(
        self, frames: Float[Tensor, "batch frames bands"], mask: Bool[Tensor, "batch frames"]
    ) -> tuple[Float[Tensor, "batch less width"], Bool[Tensor, "batch less"]]:
        maps = (frames * mask[..., None]).transpose(1, 2)[:, None]
        levels = cast("Iterable[Level]", self)
        if torch.compiler.is_exporting():
            lengths = mask.sum(1)
            for level in levels:
                maps, lengths = level.traced(maps, lengths)
        else:
            real = mask.sum(1).tolist()
            for level in levels:
                maps, real = level.padded(maps, real)
        for _ in self:
            mask = mask[:, ::2]
        return maps.flatten(1, 2).transpose(1, 2), mask


@encoders.register("pyramidal")
class PyramidalEncoder(Encoder):
    """Places are the top layer's states, one for 2 ** (halvings + levels of convolutions) frames; the summary is the
    last state of each direction.

    A frame is any vector: of a sound, or of the columns of a line of text.

    >>> encoder = PyramidalEncoder(PyramidalEncoderSettings(size=4, layers=2, halvings=2), width=3)
    >>> encoder(torch.zeros(1, 9, 3), torch.ones(1, 9, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    Settings = PyramidalEncoderSettings

    reads = PyramidalEncoderSettings.reads
    layout: LayoutKind = "frames"

    def __init__(self, settings: PyramidalEncoderSettings, *, width: int):
        super().__init__()
        self.settings = settings
        self.every = settings.every
        self.frames = nn.Identity()
        self.convolutions = FrameConvolutions(settings.convolutions) if settings.convolutions else None
        width = width if self.convolutions is None else self.convolutions.width(width)
        self.layers = RecurrentLayers(settings, width, bidirectional=settings.bidirectional, halvings=settings.halvings)
        self.size = self.summary_size = self.layers.size

    @classmethod
    def build(cls, settings: PyramidalEncoderSettings, info: InputInfo) -> PyramidalEncoder:
        return cls(settings, width=info.frame_size)

    @property
    def vectors(self) -> nn.Module:
        return self.frames

    def read(self, column: Frames, *, maps: bool = False) -> Encoded:
        return self(column.values, column.mask, column.names)  # type: ignore[no-any-return]

    def forward(
        self,
        frames: Float[Tensor, "batch frames width"],
        mask: Bool[Tensor, "batch frames"],
        names: list[list[str]] | None = None,
    ) -> Encoded:
        """names: those of the real frames; a place has the name of its first frame."""
        states = self.frames(frames)
        if self.convolutions is not None:
            states, mask = self.convolutions(states, mask)
        read: LayerOutput = self.layers(states, mask)
        tokens = None if names is None else [row[:: self.every] for row in names]
        return Encoded(Places(read.states, read.mask, Layout("frames"), tokens), read.last)

    def equations(self) -> list[str]:
        settings = self.settings
        cell, halvings = settings.cell, settings.halvings
        directions = "in both directions" if settings.bidirectional else "from left to right"
        layers = f"{settings.layers} layers" if settings.layers > 1 else "one layer"
        every = "each frame" if self.every == 1 else f"{self.every} frames"
        lines = [f"{layers} of {cell} of size {settings.size}, {directions}, one place for {every}"]
        if settings.convolutions:
            lines.append(
                f"x = the frames after {len(settings.convolutions)} levels of 3 x 3 convolutions over time and bands "
                f"({', '.join(map(str, settings.convolutions))} maps), each halving both"
            )
        if halvings:
            which = f"layers 1 to {halvings}" if halvings > 1 else "layer 1"
            lines.append(
                f"{which}: h_j^l = {cell}(h_{{j-1}}^l, [h_{{2j-1}}^{{l-1}}; h_{{2j}}^{{l-1}}]), h^0 the frames x"
            )
        if settings.layers > halvings:
            which = f"layer {settings.layers}" if settings.layers == halvings + 1 else f"layers {halvings + 1} and up"
            lines.append(f"{which}: h_j^l = {cell}(h_{{j-1}}^l, h_j^{{l-1}}){'' if halvings else ', h^0 the frames x'}")
        if settings.bidirectional:
            lines.append("h_j^l joined with the state of a second network that reads from the end")
            lines.append("h_j of the last layer are the places;  summary = the last state of each of its directions")
        else:
            lines.append("h_j of the last layer are the places;  summary = h_M")
        return [*lines, f"{cell}: {self.layers.cell.equation()}"]

    def parameter_symbols(self) -> Symbols:
        """Those of the convolutions, which no equation names, are counted as one."""
        levels = () if self.convolutions is None else self.convolutions.named_parameters()
        merged = {f"convolutions.{key}": Symbol("convolutions", merged=True) for key, _ in levels}
        return default_symbols(self) | merged
