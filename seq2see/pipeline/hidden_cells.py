"""Pictures taken apart into the cells that are looked at: one of them is hidden under grey.

The grey is as bright as the picture is in the mean; its mean colour would still tell of what was hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.data.image import CELL, Pictures
from seq2see.pipeline.occlusion import Apart, apart


@dataclass
class Cells:
    """Places are the cells of a map of so many rows and columns, each with its share of the picture's pixels; columns
    are counted from the right where the picture is read from there."""

    column: Pictures
    rows: int
    columns: int

    @property
    def count(self) -> int:
        return self.rows * self.columns

    @property
    def room(self) -> int:
        return max(self._pixels.shape[-1] * self._pixels.shape[-2] // CELL, 1)

    @property
    def _pixels(self) -> Tensor:
        if self.column.pixels is None:
            raise ValueError("pictures expected, not the maps that were made of them")
        return self.column.pixels

    def without(self, places: Int[Tensor, " rows"]) -> Pictures:
        pixels = self._pixels.clone()
        height, width = pixels.shape[-2:]
        for picture, place in zip(pixels, places.tolist(), strict=True):
            down, across = divmod(place, self.columns)
            if self.column.leftward:
                across = self.columns - 1 - across
            upper, lower = down * height // self.rows, (down + 1) * height // self.rows
            left, right = across * width // self.columns, (across + 1) * width // self.columns
            picture[:, upper:lower, left:right] = picture.float().mean().round().to(picture.dtype)
        return replace(self.column, pixels=pixels)

    def by_place(self, vectors: Float[Tensor, "batch size rows columns"]) -> Float[Tensor, "batch places"]:
        joined = (1,) if vectors.shape[2] == self.rows else (1, 2)  # a column of the map is one place
        norms = torch.linalg.vector_norm(vectors, dim=joined).view(len(vectors), self.rows, self.columns)
        found: Tensor = (norms.flip(-1) if self.column.leftward else norms).flatten(1)
        return found


@apart.register
def _(column: Pictures, part: str = "", shape: Sequence[int] = (), changes: bool = False) -> Apart:
    rows, columns = shape if len(shape) == 2 else (1, shape[0])
    return Cells(column, rows, columns)
