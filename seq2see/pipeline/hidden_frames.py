"""Videos taken apart into the places that are looked at: a frame, or a cell of one, is hidden.

The frame keeps its place in time: without it the others would be nearer to each other, and everything would seem to
move faster. What hides it is grey, as bright as the clip is in the mean; to an encoder of changes, which takes off each
pixel's mean over the clip, grey would be the largest movement of all, so that there each pixel gets its own mean over
the other frames: x_t - mean_t x_t is 0 then, and the other frames lose no more than their share of x_t in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxtyping import Bool, Float, Int, Num
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from seq2see.data.video import CELL, Clips
from seq2see.pipeline.occlusion import Apart, apart


@dataclass
class Regions:
    """Places are the cells of each frame's map of so many rows and columns, each with its share of the frame's pixels;
    whole frames are maps of one cell. changes: whether the encoder reads changes."""

    column: Clips
    frames: int
    rows: int = 1
    columns: int = 1
    changes: bool = field(default=False, kw_only=True)

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
        pixels = self._pixels.float() if self.changes else self._pixels.clone()
        height, width = pixels.shape[-2:]
        for clip, real, place in zip(pixels, self.column.mask, places.tolist(), strict=True):
            number, cell = divmod(place, self.rows * self.columns)
            down, across = divmod(cell, self.columns)
            upper, lower = down * height // self.rows, (down + 1) * height // self.rows
            left, right = across * width // self.columns, (across + 1) * width // self.columns
            clip[number, :, upper:lower, left:right] = self._nothing(clip, real, number)[:, upper:lower, left:right]
        return replace(self.column, pixels=pixels)

    def _nothing(
        self, clip: Num[Tensor, "frames channels height width"], real: Bool[Tensor, " frames"], number: int
    ) -> Num[Tensor, "channels height width"]:
        """What a frame shows that shows nothing."""
        others = real.clone()
        others[number] = False
        if self.changes and bool(others.any()):
            return clip[others].mean(0)
        return clip.float().mean().round().to(clip.dtype).expand(clip.shape[1:])

    def by_place(self, vectors: Float[Tensor, "batch frames size rows columns"]) -> Float[Tensor, "batch places"]:
        """A map of other rows and columns than the places have is shared out among them by area."""
        squares = vectors.square().sum(2)
        cells = squares[0, 0].numel() / (self.rows * self.columns)
        found: Tensor = adaptive_avg_pool2d(squares, (self.rows, self.columns)).flatten(1) * cells
        return found.sqrt()


@apart.register
def _(column: Clips, part: str = "", shape: Sequence[int] = (), changes: bool = False) -> Apart:
    return Regions(column, *shape, changes=changes)
