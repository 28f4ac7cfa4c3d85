"""What a model is fed: padded ids with a mask, never an empty tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from seq2see.memory import Copyable

PAD, UNK, SOS, EOS = 0, 1, 2, 3


@dataclass
class Sequences:
    """Symbols of one column for a batch of rows.

    ids: (batch, length), 0 where there is nothing; mask: (batch, length), True where a symbol is real;
    symbols: the real symbols as they were written, whether the vocabulary has them or not, where that is known;
    copyable: what the output would write for them, where a model may copy them.
    The length is at least 1 even if every row is empty, so that no tensor downstream is.
    """

    ids: Int[Tensor, "batch length"]
    mask: Bool[Tensor, "batch length"]
    symbols: list[list[str]] | None = None
    copyable: Copyable | None = None

    def to(self, device: torch.device | str) -> Sequences:
        copyable = None if self.copyable is None else self.copyable.to(device)
        return replace(self, ids=self.ids.to(device), mask=self.mask.to(device), copyable=copyable)

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Real symbols of each row."""
        return self.mask.sum(1)


@dataclass
class Labels:
    """One class per row. ids: (batch,)"""

    ids: Int[Tensor, " batch"]

    def to(self, device: torch.device | str) -> Labels:
        return Labels(self.ids.to(device))


@dataclass
class Numbers:
    """One row of numbers for each row of the batch. values: (batch, numbers)"""

    values: Float[Tensor, "batch numbers"]

    def to(self, device: torch.device | str) -> Numbers:
        return Numbers(self.values.to(device))


Target = Sequences | Labels | Numbers


@dataclass
class Batch:
    """Inputs by name, each a column of whatever its encoder reads, the target where it is known, and which rows of the
    data set these are.

    alignment: (batch, steps, places), where each step should look, where that is known (zeros where it is not).
    """

    inputs: dict[str, Any]
    target: Target | None = None
    rows: list[int] = field(default_factory=list)
    alignment: Float[Tensor, "batch steps places"] | None = None

    def to(self, device: torch.device | str) -> Batch:
        return Batch(
            inputs={name: column.to(device) for name, column in self.inputs.items()},
            target=None if self.target is None else self.target.to(device),
            rows=self.rows,
            alignment=None if self.alignment is None else self.alignment.to(device),
        )

    def __len__(self) -> int:
        return len(self.rows)


def pad(flat: NDArray[np.integer], starts: NDArray[np.int64], lengths: NDArray[np.int64], *, eos: bool) -> Sequences:
    """Rows `flat[start : start + length]` one above the other, `<eos>` behind each where asked for, in a single gather.

    flat: (symbols,); starts, lengths: (batch,)
    """
    width = max(int(lengths.max(initial=0)) + eos, 1)
    places = np.arange(width, dtype=np.int64)
    real = places < lengths[:, None]
    ids = np.zeros(real.shape, dtype=np.int64)
    ids[real] = flat[(starts[:, None] + places)[real]]
    if eos:
        ids[np.arange(len(lengths)), lengths] = EOS
        real = places <= lengths[:, None]
    return Sequences(torch.from_numpy(ids), torch.from_numpy(real))


def pad_lists(rows: Sequence[Sequence[int]], *, eos: bool) -> Sequences:
    """The same from lists of ids."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    flat = np.fromiter((i for row in rows for i in row), dtype=np.int64, count=int(lengths.sum()))
    return pad(flat, lengths.cumsum() - lengths, lengths, eos=eos)


# ---------------- Documents as they are stored and as a model is fed with them


@dataclass
class Nested:
    """Words of one column for a batch of documents.

    ids: (batch, sentences, words), 0 where there is nothing; mask: True where a word is real; sentences have at least
    one word, and come before the empty ones. symbols: the words as they were written, by document and sentence;
    texts: the sentences as they were written; copyable: what the output would write for the words of each document,
    one after the other, where a model may copy them. No axis is shorter than 1.
    """

    ids: Int[Tensor, "batch sentences words"]
    mask: Bool[Tensor, "batch sentences words"]
    symbols: list[list[list[str]]] | None = None
    texts: list[list[str]] | None = None
    copyable: Copyable | None = None

    def to(self, device: torch.device | str) -> Nested:
        copyable = None if self.copyable is None else self.copyable.to(device)
        return replace(self, ids=self.ids.to(device), mask=self.mask.to(device), copyable=copyable)

    @property
    def sentences(self) -> Bool[Tensor, "batch sentences"]:
        """Which sentences are real."""
        return self.mask.any(-1)


def flattened(sentences: Iterable[Sequence[int]]) -> list[int]:
    """A document as a stored row.

    >>> flattened([[5, 6], [7]])
    [5, 6, 3, 7, 3]
    """
    return [i for sentence in sentences for i in (*sentence, EOS)]


def nest(flat: NDArray[np.integer], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Nested:
    """Stored rows `flat[start : start + length]` as a batch.

    flat: (symbols,); starts, lengths: (batch,)
    """
    rows = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    ids = np.asarray(flat[np.repeat(starts - first, lengths) + np.arange(len(rows))], dtype=np.int64)
    ends = ids == EOS
    before = np.cumsum(ends) - ends  # sentences that ended before this word, in the whole batch
    opened = np.append(0, np.flatnonzero(ends) + 1)  # where each sentence begins
    sentence = before - np.append(before, 0)[np.minimum(first, len(rows))][rows]
    word = np.arange(len(rows)) - opened[before]
    shape = (len(lengths), max(int(sentence.max(initial=0)) + 1, 1), max(int(word.max(initial=0)), 1))
    out, real = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    where = rows[~ends], sentence[~ends], word[~ends]
    out[where] = ids[~ends]
    real[where] = True
    return Nested(torch.from_numpy(out), torch.from_numpy(real))
