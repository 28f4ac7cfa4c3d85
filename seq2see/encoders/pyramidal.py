"""The pyramidal encoder: recurrent layers over frames, the lower ones over pairs of neighbours (Chan et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import torch  # noqa: F401 - for the example
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from seq2see.cells import CellSettings
from seq2see.data.batches import Frames
from seq2see.encoders.base import Encoded, Encoder, InputInfo, encoders
from seq2see.encoders.layers import LayerOutput, RecurrentLayers
from seq2see.errors import counted
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import Places
from seq2see.registry import Problem
from seq2see.settings.base import Layers
from seq2see.settings.columns import EncoderSettings

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class PyramidalEncoderSettings(CellSettings, EncoderSettings):
    """h_1 .. h_M: recurrent layers over frames, of which the lower ones read pairs and so halve their number."""

    reads: ClassVar[tuple[str, ...]] = ("frames",)
    lies: ClassVar[str] = "frames"
    kind: Literal["pyramidal"] = Field("pyramidal", description="recurrent layers, each half as long as the one below")
    bidirectional: bool = Field(True, description="every layer reads in both directions, the states joined")
    layers: Layers = Field(3, description="one above the other")
    halvings: Annotated[int, Field(ge=0, le=30)] = Field(
        2, description="so many layers, from the lowest on, read neighbours joined in pairs; the rest one by one"
    )

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if self.halvings > self.layers and path in recipe.read_by:
            layers = counted(self.layers, "layer")
            message = f"{self.halvings} in {layers}, each of which halves once; allowed: at most {self.layers}"
            yield Problem(f"{path}.halvings", message, "halvings")


@encoders.register("pyramidal")
class PyramidalEncoder(Encoder):
    """Places are the top layer's states, one for 2 ** halvings frames; the summary is the last state of each direction.

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
        self.every = 1 << settings.halvings
        self.frames = nn.Identity()
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
        read: LayerOutput = self.layers(self.frames(frames), mask)
        tokens = None if names is None else [row[:: self.every] for row in names]
        return Encoded(Places(read.states, read.mask, Layout("frames"), tokens), read.last)

    def equations(self) -> list[str]:
        settings = self.settings
        cell, halvings = settings.cell, settings.halvings
        directions = "in both directions" if settings.bidirectional else "from left to right"
        layers = f"{settings.layers} layers" if settings.layers > 1 else "one layer"
        every = "each frame" if not halvings else f"{1 << halvings} frames"
        lines = [f"{layers} of {cell} of size {settings.size}, {directions}, one place for {every}"]
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
