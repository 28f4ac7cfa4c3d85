"""Inputs taken apart into the places that are looked at: how many there are, and the input without one of them.

For text that is the input without the symbol, not the symbol replaced by another: whatever is put in its place would
be an input of its own. What the places of another kind of column are is said by a class of its own here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.data.batches import Sequences, pad_lists
from seq2see.data.nested import Nested, flattened, nest
from seq2see.errors import UserError

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
