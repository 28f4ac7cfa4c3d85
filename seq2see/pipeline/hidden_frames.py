"""Videos taken apart into the places that are looked at: a frame, or a cell of one, is hidden under grey.

The grey is as bright as the clip is in the mean. The frame keeps its place in time: without it the others would be
nearer to each other, and everything would seem to move faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from seq2see.data.video import CELL, Clips
from seq2see.pipeline.occlusion import Apart, apart


@dataclass
class Regions:
    """Places are the cells of each frame's map of so many rows and columns, each with its share of the frame's pixels;
    whole frames are maps of one cell."""

    column: Clips
    frames: int
    rows: int = 1
    columns: int = 1

    @property
    def count(self) -> int:
        return self.frames * self.rows * self.columns

    @property
    def room(self) -> int:
        frames, _, height, width = self._pixels.shape[1:]
        return max(frames * height * width // CELL, 1)

    @property
    def _pixels(self) -> Tensor:
        if self.column.pixels is None:
            raise ValueError("clips expected, not the maps that were made of them")
        return self.column.pixels

    def without(self, places: Int[Tensor, " rows"]) -> Clips:
        pixels = self._pixels.clone()
        height, width = pixels.shape[-2:]
        grey = pixels[0].float().mean().round().to(pixels.dtype)  # rows are equal
        for clip, place in zip(pixels, places.tolist(), strict=True):
            number, cell = divmod(place, self.rows * self.columns)
            down, across = divmod(cell, self.columns)
            upper, lower = down * height // self.rows, (down + 1) * height // self.rows
            left, right = across * width // self.columns, (across + 1) * width // self.columns
            clip[number, :, upper:lower, left:right] = grey
        return replace(self.column, pixels=pixels)

    def by_place(self, vectors: Float[Tensor, "batch frames size rows columns"]) -> Float[Tensor, "batch places"]:
        """A map of other rows and columns than the places have is shared out among them by area."""
        squares = vectors.square().sum(2)
        cells = squares[0, 0].numel() / (self.rows * self.columns)
        found: Tensor = adaptive_avg_pool2d(squares, (self.rows, self.columns)).flatten(1) * cells
        return found.sqrt()


@apart.register
def _(column: Clips, part: str = "", shape: Sequence[int] = ()) -> Apart:
    return Regions(column, *shape)
