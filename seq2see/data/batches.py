"""Batches: padded ids with masks, the plan of which rows form a batch, and the rows of ids that they are made of."""

from __future__ import annotations

import mmap
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast, overload

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from seq2see.data.vocabulary import EOS
from seq2see.files import unwritable
from seq2see.memory import Copyable


@dataclass
class Sequences:
    """Symbols of one column for a batch of rows.

    ids: (batch, length), 0 for padding; mask: (batch, length), True where a symbol is real;
    symbols: the real symbols as written, including unknown ones, if available;
    copyable: their output symbols, if a model may copy them.
    The length is at least 1 even if every row is empty, so that no tensor is empty.
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
    """A vector for each row. values: (batch, numbers)"""

    values: Float[Tensor, "batch numbers"]

    def to(self, device: torch.device | str) -> Numbers:
        return Numbers(self.values.to(device))


@dataclass
class Frames:
    """What one column holds frame by frame, whatever a frame is made of.

    values: (batch, frames, size), 0 where there is nothing; mask: (batch, frames), True where a frame is real;
    names: what to call each real frame, where somebody will read it.
    """

    values: Float[Tensor, "batch frames size"]
    mask: Bool[Tensor, "batch frames"]
    names: list[list[str]] | None = None

    def to(self, device: torch.device | str) -> Frames:
        return replace(self, values=self.values.to(device), mask=self.mask.to(device))


Target = Sequences | Labels | Numbers


@dataclass
class TimeSpans:
    """When each step's symbol is said or shown, as shares of its row's sound or clip: (batch, steps, 2), from start to
    end; zeros where that is not known."""

    values: Float[Tensor, "batch steps 2"]

    @classmethod
    def of(cls, spans: Sequence[Mapping[int, tuple[float, float]]], *, steps: int) -> TimeSpans:
        """spans: of each row by step."""
        values = torch.zeros(len(spans), steps, 2)
        for row, by_step in zip(values, spans, strict=True):
            for step, span in by_step.items():
                row[step] = torch.tensor(span)
        return cls(values)

    def to(self, device: torch.device | str) -> TimeSpans:
        return TimeSpans(self.values.to(device))

    def inside(self, mask: Bool[Tensor, "batch places"]) -> Bool[Tensor, "batch steps places"]:
        """Which places lie within the time of a step, if only in part. The real places of a row, which come first,
        divide its time evenly.

        >>> spans = TimeSpans.of([{0: (0.0, 0.5), 1: (0.7, 1.0)}], steps=3)
        >>> spans.inside(torch.ones(1, 4, dtype=torch.bool))[0].long().tolist()
        [[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]
        """
        count = mask.sum(1)[:, None, None]
        place = torch.arange(mask.shape[1], device=mask.device)
        start, end = (self.values * count[..., :1]).unbind(-1)  # in places
        return (place < end[..., None] - ROUNDING) & (place + 1 > start[..., None] + ROUNDING) & mask[:, None]


ROUNDING = 1e-4
"""Of a place, by which a span may touch it without being in it."""


@dataclass
class Batch:
    """Inputs by name, the target if known, and the rows of the data set.

    alignment: where each step should look: weights over places (batch, steps, places), zeros where unknown, or times.
    """

    inputs: dict[str, Any]
    target: Target | None = None
    rows: list[int] = field(default_factory=list)
    alignment: Float[Tensor, "batch steps places"] | TimeSpans | None = None

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
    """Rows `flat[start : start + length]` as a padded batch, optionally with `<eos>`, in a single gather.

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


@dataclass
class Nested:
    """Words of one column for a batch of documents.

    ids: (batch, sentences, words), 0 for padding; mask: True where a word is real; sentences have at least one word and
    come before the empty ones. symbols: the words as written, by document and sentence; texts: the sentences as
    written; copyable: the output symbols of the words of each document in sequence, if a model may copy them. Every
    axis is at least 1.
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


def flatten_document(sentences: Iterable[Sequence[int]]) -> list[int]:
    """A document as a stored row: sentences separated by `<eos>`.

    >>> flatten_document([[5, 6], [7]])
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
    before = np.cumsum(ends) - ends  # sentences that ended before this word, over the whole batch
    starts_of = np.append(0, np.flatnonzero(ends) + 1)  # where each sentence begins
    sentence = before - np.append(before, 0)[np.minimum(first, len(rows))][rows]
    word = np.arange(len(rows)) - starts_of[before]
    shape = (len(lengths), max(int(sentence.max(initial=0)) + 1, 1), max(int(word.max(initial=0)), 1))
    out, real = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    position = rows[~ends], sentence[~ends], word[~ends]
    out[position] = ids[~ends]
    real[position] = True
    return Nested(torch.from_numpy(out), torch.from_numpy(real))


Rows = NDArray[np.int64]
POOL_BATCHES = 100
ON_DISK_ROWS = 1 << 22
"""The order of more rows than this lies in a temporary file that is mapped, not in memory."""


class Batches(Sequence[Rows]):
    """The batches of an epoch, in the order of training: slices of one array of rows, made when they are taken.

    order: (rows,) all rows, those of a batch side by side; cuts: (batches + 1,) where each batch begins;
    turns: (batches,) which batch comes when.
    """

    def __init__(self, order: NDArray[np.integer], cuts: NDArray[np.int64], turns: NDArray[np.int64]):
        self._order, self._cuts, self._turns = order, cuts, turns

    def __len__(self) -> int:
        return len(self._turns)

    @overload
    def __getitem__(self, index: int) -> Rows: ...

    @overload
    def __getitem__(self, index: slice) -> list[Rows]: ...

    def __getitem__(self, index: int | slice) -> Rows | list[Rows]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        turn = self._turns[index]
        return self._order[self._cuts[turn] : self._cuts[turn + 1]].astype(np.int64)


class BatchPlan:
    """Batches of rows of similar length under a budget of symbols including padding: rows x (longest of the first
    column + longest of the second + ...).

    widths: (rows, columns), symbols of each row by column, the output last; of any type of integers, in memory or
    mapped; symbols: of all rows. A row above the budget is a batch of its own. The seed and a position (epoch, index of
    the batch) determine the rows. Beside the widths, a plan takes four bytes for each row, which lie on disk for large
    tables.
    """

    def __init__(self, widths: NDArray[np.integer], *, batch_tokens: int, batch_rows: int, seed: int = 1):
        self.widths = widths
        self.batch_tokens = batch_tokens
        self.batch_rows = batch_rows
        self.seed = seed
        self.symbols = _total(widths)
        release(widths)
        mean = max(self.symbols / len(widths), 1.0) if len(widths) else 1.0
        self._rows_per_batch = max(min(batch_rows, batch_tokens / mean), 1.0)
        self._latest: tuple[int, Batches] | None = None

    def epoch(self, number: int) -> Batches:
        """All rows, once each, as batches in random order.

        Rows are shuffled, divided into pools of about a hundred batches and sorted by length within each pool, so that
        batches differ between epochs.
        """
        if self._latest is None or self._latest[0] != number:
            self._latest = None  # the order of the epoch before is not held beside this one
            random = np.random.default_rng([abs(self.seed), int(self.seed < 0), number])
            order = _numbered(len(self.widths))
            random.shuffle(order)  # what `permutation` does, in place
            pool = int(self._rows_per_batch * POOL_BATCHES)
            cuts = [np.zeros(1, dtype=np.int64)]
            release(order)
            for number_of_pool, i in enumerate(range(0, len(order), pool), start=1):
                rows, widths = self._sorted(order[i : i + pool])
                order[i : i + pool] = rows
                cuts.append(self._ends(widths) + i)
                if number_of_pool % POOL_BATCHES == 0:
                    release(order)
            release(order)
            release(self.widths)
            ends = np.concatenate(cuts)
            self._latest = number, Batches(order, ends, random.permutation(len(ends) - 1))
        return self._latest[1]

    def by_length(self) -> list[Rows]:
        """All rows, once each, longest first: for evaluation, where memory runs out early or never."""
        order, widths = self._sorted(np.arange(len(self.widths)))
        rows = order.astype(np.int64)
        return [rows[first:last] for first, last in pairwise([0, *self._ends(widths).tolist()])][::-1]

    def _sorted(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Rows of similar lengths side by side, and their widths; ties keep their random order."""
        widths = np.take(self.widths, rows, axis=0)
        order = self._by_width(widths)
        return rows[order], np.take(widths, order, axis=0)

    def _by_width(self, widths: NDArray[np.integer], column: int = 0, *, falling: bool = False) -> NDArray[np.int64]:
        """The order of rows of these widths.

        One input: by its length, then the output's. Several: by the length of the first, in strips of equal size, each
        sorted by the rest. Neighbouring strips ascend and descend in turn, so that rows stay similar across their
        border.
        """
        inputs = widths.shape[1] - 1 - column
        first = widths[:, column].astype(np.int64)
        if falling:
            first = -first
        if inputs < 1:
            return np.argsort(first, kind="stable")
        if inputs == 1:
            output = widths[:, -1].astype(np.int64)
            most = int(output.max(initial=0))
            # one number for both, with which small ones are sorted by counting
            keys = (2 * most + 1) * (first - first.min(initial=0)) + np.where(first % 2, -output, output) + most
            return np.argsort(keys.astype(np.min_scalar_type(int(keys.max(initial=0)))), kind="stable")
        order = np.argsort(first, kind="stable")
        strips = max(round((len(order) / self._rows_per_batch) ** (1 / inputs)), 1)
        parts = np.array_split(order, strips)
        return np.concatenate(
            [part[self._by_width(widths[part], column + 1, falling=bool(i % 2))] for i, part in enumerate(parts)]
        )

    def _ends(self, widths: NDArray[np.integer]) -> NDArray[np.int64]:
        """Neighbouring rows of these widths as batches, each as large as the budget allows: where each ends,
        (batches,). Rows of equal widths, which stand side by side, are taken together."""
        if not len(widths):
            return np.zeros(0, dtype=np.int64)
        changed = np.zeros(len(widths) - 1, dtype=bool)
        for column in widths.T:
            changed |= column[1:] != column[:-1]
        firsts = np.append(0, np.flatnonzero(changed) + 1)
        lasts = [*firsts[1:].tolist(), len(widths)]
        ends: list[int] = []
        start, longest = 0, [0] * widths.shape[1]
        for first, last, row in zip(firsts.tolist(), lasts, widths[firsts].tolist(), strict=True):
            longest = list(map(max, longest, row))
            while (end := start + self._most_rows(sum(longest))) < last:
                start = max(end, first)
                ends.append(start)
                longest = row
        return np.array([*ends, len(widths)], dtype=np.int64)

    def _most_rows(self, symbols: int) -> int:
        """Rows of so many symbols each, padding included, that a batch may have."""
        return min(self.batch_rows, max(self.batch_tokens // max(symbols, 1), 1))


def _numbered(rows: int) -> NDArray[np.integer]:
    """0, 1, 2, .. below `rows`, as an array that can be shuffled; mapped from a temporary file if they are many."""
    kind = np.int32 if rows <= np.iinfo(np.int32).max else np.int64
    if rows <= ON_DISK_ROWS:
        return np.arange(rows, dtype=kind)
    with tempfile.TemporaryFile() as file:  # the mapping keeps it until the array is gone
        # a full disk is told here; in a mapping it would end the process
        with _writing(Path(tempfile.gettempdir()), closing=[cast(BinaryIO, file)]):
            for start in range(0, rows, _FLUSH):
                file.write(np.arange(start, min(start + _FLUSH, rows), dtype=kind).data)
            file.flush()
        return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(rows,)))


def release(array: NDArray[Any]) -> None:
    """Give the memory of a mapped array back: what was read through the mapping counts as the process's own until then,
    and is read from the file again when it is needed."""
    mapped: Any = array
    while mapped is not None and not isinstance(mapped, np.memmap):
        mapped = getattr(mapped, "base", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _total(widths: NDArray[np.integer]) -> int:
    """The sum, without a copy of the whole in a larger type."""
    blocks = (widths[start : start + _FLUSH] for start in range(0, len(widths), _FLUSH))
    return sum(int(block.sum(dtype=np.int64)) for block in blocks)


# ---------------- Rows of ids, in memory or mapped from disk

_FLUSH = 1 << 18


class Ragged:
    """Rows stored one after the other.

    flat: (symbols,) int32; offsets: (rows + 1,) int64; row i is flat[offsets[i] : offsets[i + 1]].
    """

    def __init__(self, flat: NDArray[np.int32], offsets: NDArray[np.int64]):
        self.flat = flat
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.flat[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Symbols of each row: (rows,)"""
        return np.diff(self.offsets)

    def pad(self, rows: Sequence[int] | NDArray[np.integer], *, eos: bool) -> Sequences:
        """The selected rows as a padded batch."""
        selected = np.asarray(rows, dtype=np.int64)
        starts = np.asarray(self.offsets[selected])
        return pad(self.flat, starts, np.asarray(self.offsets[selected + 1]) - starts, eos=eos)

    @classmethod
    def open(cls, path: Path) -> Ragged:
        """Map what a RaggedWriter wrote under this path (`path.ids`, `path.offsets`)."""
        ids, offsets = _files(path)
        flat = np.memmap(ids, dtype=np.int32, mode="r") if ids.stat().st_size else np.empty(0, dtype=np.int32)
        return cls(flat, np.memmap(offsets, dtype=np.int64, mode="r"))


def in_pieces(array: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """An array in pieces of so many numbers. A mapped one is read from its file, as what is read through a mapping
    stays in the memory of the process."""
    if not isinstance(array, np.memmap) or array.filename is None or array.offset:
        yield from (array[start : start + size] for start in range(0, len(array), size))
        return
    with Path(array.filename).open("rb") as file:
        for start in range(0, len(array), size):
            yield np.frombuffer(file.read(min(size, len(array) - start) * array.itemsize), dtype=array.dtype)


class RaggedWriter:
    """Writes rows one at a time; with a path, only a buffer is held in memory."""

    def __init__(self, path: Path | None = None):
        self._path = path
        self._flat = array("i")
        self._offsets = array("q", [0])
        self._end = 0
        self._open: tuple[BinaryIO, BinaryIO] | None = None
        if path is not None:
            with _writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                ids, offsets = _files(path)
                self._open = ids.open("wb"), offsets.open("wb")

    def __enter__(self) -> RaggedWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; unfinished ones are useless."""
        for file in self._open or ():
            with suppress(OSError):
                file.close()

    def append(self, row: Sequence[int]) -> None:
        self._flat.extend(row)
        self._end += len(row)
        self._offsets.append(self._end)
        if self._open is not None and len(self._flat) + len(self._offsets) > _FLUSH:
            self._flush(self._open)

    def extend(self, flat: NDArray[np.integer], lengths: NDArray[np.integer]) -> None:
        """Append several rows. flat: (symbols,) of all; lengths: (rows,)"""
        self._flat.frombytes(flat.astype(np.int32).tobytes())
        self._offsets.frombytes((self._end + np.cumsum(lengths, dtype=np.int64)).tobytes())
        self._end += len(flat)
        if self._open is not None and len(self._flat) + len(self._offsets) > _FLUSH:
            self._flush(self._open)

    def _flush(self, files: tuple[BinaryIO, BinaryIO]) -> None:
        for file, buffer in zip(files, (self._flat, self._offsets), strict=True):
            with _writing(Path(file.name), closing=files):
                buffer.tofile(file)
            del buffer[:]

    def finish(self) -> Ragged:
        """Close the files and return the rows."""
        if self._open is None or self._path is None:
            return Ragged(np.array(self._flat, dtype=np.int32), np.array(self._offsets, dtype=np.int64))
        self._flush(self._open)
        for file in self._open:
            with _writing(Path(file.name), closing=self._open):
                file.close()
        return Ragged.open(self._path)


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.ids"), path.with_name(f"{path.name}.offsets")


@contextmanager
def _writing(path: Path, *, closing: Sequence[BinaryIO] = ()) -> Iterator[None]:
    """Turn errors of writing a file into UserErrors."""
    try:
        yield
    except OSError as error:
        for file in closing:
            with suppress(OSError):
                file.close()
        raise unwritable(path, error) from None
