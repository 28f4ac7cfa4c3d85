"""Occlusion: inputs taken apart into their places, and the input with one of them left out or hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from seq2see.data.batches import Nested, Sequences, flattened, nest, pad_lists
from seq2see.errors import UserError
from seq2see.modalities.image import CELL as IMAGE_CELL
from seq2see.modalities.image import Pictures
from seq2see.modalities.sound import CELL as SOUND_CELL
from seq2see.modalities.sound import Frames
from seq2see.modalities.video import CELL as VIDEO_CELL
from seq2see.modalities.video import Clips

# ---------------- Inputs taken apart into the places that are looked at

Word = TypeVar("Word")


class Apart(Protocol):
    """A column of equal rows, seen as places."""

    @property
    def count(self) -> int:
        """Places of each row."""
        ...

    def without(self, places: Int[Tensor, " rows"]) -> Any:
        """The column, each row without the place of that number."""
        ...

    @property
    def room(self) -> int:
        """Symbols' worth of room that a row takes in a batch."""
        ...

    def by_place(self, vectors: Float[Tensor, ...]) -> Float[Tensor, "rows places"]:
        """The norms of vectors, one for each e(x_j) as the encoder reads them, as one number for each place; asked once
        for each part of which the e(x_j) are joined."""
        ...


@singledispatch
def apart(column: Any, part: str = "", shape: Sequence[int] = (), changes: bool = False) -> Apart:
    """part: which of its further places are looked at (`words`), where it is not the column's own; shape: how places
    lie, where the column alone does not tell; changes: whether it is read as changes over time
    (`Encoder.reads_changes`), so that what hides a place must be none."""
    raise UserError(f"the places of such an input ({type(column).__name__}) cannot be left out one by one")


@dataclass
class _Symbols:
    """Places are the symbols of a row."""

    column: Sequences

    @property
    def count(self) -> int:
        return self.column.ids.shape[1]

    def without(self, places: Int[Tensor, " rows"]) -> Sequences:
        column = self.column
        rows, length = column.ids.shape
        if length < 2 or not bool(column.mask.all()):
            raise ValueError("equal rows of two symbols or more expected, with no padding")
        kept = torch.arange(length, device=column.ids.device) != places[:, None]
        symbols = None
        if column.symbols is not None:
            chosen = zip(column.symbols, places.tolist(), strict=True)
            symbols = [[*row[:place], *row[place + 1 :]] for row, place in chosen]
        copyable = column.copyable
        if copyable is not None:
            copyable = replace(copyable, ids=copyable.ids[kept].view(rows, -1))
        return Sequences(column.ids[kept].view(rows, -1), column.mask[kept].view(rows, -1), symbols, copyable)

    @property
    def room(self) -> int:
        return self.count

    def by_place(self, vectors: Float[Tensor, "rows places size"]) -> Float[Tensor, "rows places"]:
        norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
        return norms


@dataclass
class _Words:
    """Places are the words of a document; a sentence that loses its only word is gone."""

    column: Nested

    @property
    def count(self) -> int:
        return int(self.column.mask[0].sum())

    def without(self, places: Int[Tensor, " rows"]) -> Nested:
        real = self.column.mask
        number = (real.flatten(1).cumsum(1) - 1).view_as(real)
        return _kept(self.column, real & (number != places[:, None, None]))

    @property
    def room(self) -> int:
        return self.column.ids[0].numel()

    def by_place(self, vectors: Float[Tensor, "sentences words size"]) -> Float[Tensor, "rows places"]:
        mask = self.column.mask
        norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
        return norms.view(mask.shape)[mask].view(len(mask), -1)


@dataclass
class _Sentences:
    """Places are the sentences of a document; what its words' vectors have is added up."""

    column: Nested

    @property
    def count(self) -> int:
        return int(self.column.sentences[0].sum())

    def without(self, places: Int[Tensor, " rows"]) -> Nested:
        real = self.column.mask
        number = torch.arange(real.shape[1], device=real.device)
        return _kept(self.column, real & (number != places[:, None])[..., None])

    @property
    def room(self) -> int:
        return self.column.ids[0].numel()

    def by_place(self, vectors: Float[Tensor, "sentences words size"]) -> Float[Tensor, "rows places"]:
        mask = self.column.mask
        norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
        return (norms.view(mask.shape) * mask).sum(-1)


def _kept(column: Nested, kept: Tensor) -> Nested:
    """The documents of those words alone, sentences moved up where others are gone.

    How a sentence would be written without a word is not known here: `texts` is not given.
    """
    chosen = kept.tolist()
    documents = [_filled(*pair) for pair in zip(column.ids.tolist(), chosen, strict=True)]
    rows = [flattened(document) for document in documents]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    made = nest(np.array([i for row in rows for i in row], dtype=np.int64), np.cumsum(lengths) - lengths, lengths)
    if column.symbols is not None:
        made.symbols = [_filled(*pair) for pair in zip(column.symbols, chosen, strict=True)]
    if column.copyable is not None:
        stays = [flags[real] for flags, real in zip(kept, column.mask, strict=True)]
        ids = [row[: len(flags)][flags].tolist() for row, flags in zip(column.copyable.ids, stays, strict=True)]
        made.copyable = replace(column.copyable, ids=pad_lists(ids, eos=False).ids)
    return made.to(column.ids.device)


def _filled(sentences: list[list[Word]], kept: list[list[bool]]) -> list[list[Word]]:
    """The words that are kept, by sentence; sentences that keep none are left out. Padding has no words to zip with."""
    cut = [
        [word for word, stays in zip(sentence, row, strict=False) if stays]
        for sentence, row in zip(sentences, kept, strict=False)
    ]
    return [sentence for sentence in cut if sentence]


@apart.register
def _(column: Sequences, part: str = "", shape: Sequence[int] = (), changes: bool = False) -> Apart:
    return _Symbols(column)


@apart.register
def _(column: Nested, part: str = "", shape: Sequence[int] = (), changes: bool = False) -> Apart:
    return _Words(column) if part == "words" else _Sentences(column)


# ---------------- Pictures taken apart into the cells that are looked at


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
        return max(self._pixels.shape[-1] * self._pixels.shape[-2] // IMAGE_CELL, 1)

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


# ---------------- Videos taken apart into the places that are looked at


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
        return max(frames * height * width // VIDEO_CELL, 1)

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


# ---------------- Sounds taken apart into the places that are looked at


@dataclass
class Stretches:
    """Places are stretches of neighbouring frames; their vectors are the frames as the encoder reads them, joined."""

    column: Frames
    count: int

    @property
    def room(self) -> int:
        return max(self.column.values.shape[1] // SOUND_CELL, 1)

    def without(self, places: Int[Tensor, " rows"]) -> Frames:
        values = self.column.values
        hidden = self._place_of_frame() == places[:, None]
        means = values.mean((1, 2), keepdim=True)
        return replace(self.column, values=torch.where(hidden[..., None], means, values))

    def by_place(self, vectors: Float[Tensor, "rows frames size"]) -> Float[Tensor, "rows places"]:
        squares = vectors.square().sum(-1)
        found: Tensor = squares.new_zeros(len(squares), self.count).index_add_(1, self._place_of_frame(), squares)
        return found.sqrt()

    def _place_of_frame(self) -> Int[Tensor, " frames"]:
        mask = self.column.mask
        if not bool(mask.all()):
            raise ValueError("equal sounds expected, with no padding")
        frames = torch.arange(mask.shape[1], device=mask.device)
        every = frames_for_each(mask.shape[1], self.count)
        return frames // every if every else frames * self.count // len(frames)


def frames_for_each(frames: int, places: int) -> int:
    """How many frames each of so many places stands for, where neighbours were joined in pairs, or in stacks of any
    size; the last place may have fewer. 0 where that cannot have been: an encoder of one's own then shares them out
    evenly.

    >>> [frames_for_each(99, places) for places in (99, 50, 25, 33, 30)]
    [1, 2, 4, 3, 0]
    """
    every = 1
    while -(-frames // every) > places:
        every *= 2
    found = (number for number in (every, -(-frames // places)) if -(-frames // number) == places)
    return next(found, 0)


@apart.register
def _(column: Frames, part: str = "", shape: Sequence[int] = (), changes: bool = False) -> Apart:
    return Stretches(column, shape[0])


# ---------------- Every kind of input that can be taken apart into its places

__all__ = ["Apart", "Cells", "Regions", "Stretches", "apart"]
