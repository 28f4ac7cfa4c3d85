"""Training data as ids: the rows of a table (`Dataset`), or one contiguous text (`Stream`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from seq2see.data.batches import Batch, Ragged, RaggedWriter, in_pieces
from seq2see.data.columns import ALIGNMENT, OUTPUT, Values, place_of
from seq2see.data.vocabulary import SOS
from seq2see.errors import UserError
from seq2see.memory import Copyable
from seq2see.modalities.base import Chosen
from seq2see.modalities.label import BACKWARD
from seq2see.modalities.text import TextField
from seq2see.modalities.video import turned
from seq2see.pipeline.fields import COPYABLE, Fields, as_target, as_words
from seq2see.recipe.schema import Recipe

Row = Mapping[str, str]
ROWS_AT_ONCE = 1 << 18
HASHED_AT_ONCE = 1 << 22


class Dataset:
    """The encoded rows of a table, a store of ids for each column; batches take them in any order.

    left_out: the number of rows whose output was too long to train on; cut: by input, the number of rows of which only
    the beginning is read; widths: see there, where they are known already.
    """

    def __init__(
        self,
        fields: Fields,
        stores: dict[str, Ragged],
        *,
        left_out: int = 0,
        cut: Mapping[str, int] | None = None,
        widths: NDArray[np.integer] | None = None,
    ):
        self.fields = fields
        self.stores = stores
        self.left_out = left_out
        self.cut = dict(cut or {})
        self._widths = widths

    @cached_property
    def digest(self) -> str:
        """A short hash of all ids."""
        return digest_arrays(*(part for store in self.stores.values() for part in (store.flat, store.offsets)))

    @classmethod
    def build(
        cls,
        fields: Fields,
        rows: Iterable[Row],
        folder: Path | None = None,
        training: bool = True,
        used: Callable[[Row], None] | None = None,
    ) -> Dataset:
        """Encode rows in one pass; into files of `folder` if there is one, so that memory is no limit.

        training: leave out (and count) rows whose output is longer than `max_length`; used: called with each row that
        is kept.
        """
        left_out, cut = 0, Counter[str]()
        with ExitStack() as opened:
            if isinstance(rows, Generator):
                opened.enter_context(closing(rows))
            paths = {name: None if folder is None else folder / name for name in fields.stored}
            writers = {name: opened.enter_context(RaggedWriter(path)) for name, path in paths.items()}
            for number, row in enumerate(rows, start=1):
                try:
                    examples = fields.read(row, output=True)
                    encoded = fields.ids(row, examples)
                except UserError as error:
                    raise UserError(f"{place_of(row, number)}: {error}") from None
                if training and not fields.output.fits(encoded[OUTPUT]):
                    left_out += 1
                    continue
                if used is not None:
                    used(row)
                for name, ids in encoded.items():
                    writers[name].append(ids)
                cut.update(name for name, field in fields.inputs.items() if field.is_cut(examples[name]))
            stores = {name: writer.finish() for name, writer in writers.items()}
        return cls(fields, stores, left_out=left_out, cut=cut)

    def __len__(self) -> int:
        return len(self.stores[OUTPUT])

    @property
    def widths(self) -> NDArray[np.integer]:
        """Symbols of each row by column, inputs first, the output with its `<eos>` last: (rows, columns), in the
        smallest type that holds them."""
        if self._widths is not None:
            return self._widths
        columns = list(self.fields.all.items())
        made: NDArray[np.integer] = np.zeros((len(self), len(columns)), dtype=np.uint8)
        for start in range(0, len(self), ROWS_AT_ONCE):
            part = slice(start, min(start + ROWS_AT_ONCE, len(self)))
            for i, (name, field) in enumerate(columns):
                store = self.stores[name]
                widths = field.widths(Ragged(store.flat, store.offsets[part.start : part.stop + 1]))
                least = np.min_scalar_type(int(widths.max()))
                if least.itemsize > made.itemsize:
                    made = made.astype(least)
                made[part, i] = widths
        self._widths = made  # of files, each of which had to be opened
        return made

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Symbols of each row, inputs and output added up: (rows,)"""
        return np.asarray(self.widths.sum(1, dtype=np.int64))

    def batch(self, rows: Chosen) -> Batch:
        """The rows with these indices, in this order."""
        fields, stores = self.fields, self.stores
        inputs = {name: field.pad(stores[name], rows) for name, field in fields.inputs.items()}
        target = as_target(fields.output.pad(stores[OUTPUT], rows))
        batch = Batch(inputs, target, [int(row) for row in rows])
        if fields.copying is not None:
            column = as_words(inputs[fields.copying.name])
            inputs[fields.copying.name] = replace(column, copyable=Copyable(stores[COPYABLE].pad(rows, eos=False).ids))
        if fields.alignment is not None:
            source = inputs[fields.alignment.name]
            batch.alignment = fields.alignment.batch(stores[ALIGNMENT], batch.rows, target=target, source=source)
        return batch


def digest_arrays(*arrays: NDArray[np.integer]) -> str:
    """A short hash of all ids, read in blocks, as they may be mapped files."""
    hashed = blake2b(digest_size=8)
    for array in arrays:
        for piece in in_pieces(array, HASHED_AT_ONCE):
            hashed.update(np.ascontiguousarray(piece).data)
    return hashed.hexdigest()


# ---------------------------------------------------------------- contiguous text


class Chunk(NamedTuple):
    """inputs, targets: (lanes, length); the target of a place is the input of the next."""

    inputs: Int[Tensor, "lanes length"]
    targets: Int[Tensor, "lanes length"]


class Stream:
    """One contiguous text for a language model, read in parallel lanes, each in chunks that follow one another.

    ids: (symbols,) of the whole text, newlines included; in memory or mapped from disk.
    """

    def __init__(self, ids: NDArray[np.int32]):
        if len(ids) < 1:
            raise UserError("the text is empty: there is nothing to learn from")
        self.ids = ids

    @classmethod
    def build(cls, field: TextField, lines: Iterable[str], *, path: Path | None = None) -> Stream:
        """Encode lines (without their newlines) in one pass; into files under `path` if there is one."""
        with RaggedWriter(path) as writer:
            for line in lines:
                writer.append(field.vocabulary.encode(field.stream_symbols(line)))
            return cls(writer.finish().flat)

    def __len__(self) -> int:
        return len(self.ids)

    def lanes(self, count: int) -> int:
        """The number of lanes: `count`, or fewer if the text has fewer symbols."""
        return min(count, len(self.ids))

    def steps(self, *, bptt: int, lanes: int) -> int:
        """The number of chunks."""
        return -(-self._length(lanes) // bptt)

    def _length(self, lanes: int) -> int:
        return len(self.ids) // self.lanes(lanes)

    def chunks(self, *, bptt: int, lanes: int, start: int = 0) -> Iterator[Chunk]:
        """Chunks in order, from chunk number `start` on (to resume).

        The text is cut into lanes of equal length; less than one symbol per lane is left over at its end and not read.
        Row l of a chunk goes on where row l of the chunk before it ended. Each lane begins with `<sos>`, so that a
        model learns to begin.
        """
        lanes = self.lanes(lanes)
        length = self._length(lanes)
        rows = np.asarray(self.ids[: lanes * length]).reshape(lanes, length)
        for first in range(start * bptt, length, bptt):
            last = min(first + bptt, length)
            targets = rows[:, first:last].astype(np.int64)
            before = rows[:, first - 1 : first] if first else np.full((lanes, 1), SOS)
            inputs = np.concatenate([before, targets[:, :-1]], axis=1, dtype=np.int64)
            yield Chunk(torch.from_numpy(inputs), torch.from_numpy(targets))


# ---------------------------------------------------------------- videos read backwards


def reverse_videos(recipe: Recipe, rows: Sequence[Row]) -> list[Row]:
    """The same rows with every video read from its end, which shows whether a model uses the order of frames."""
    if recipe.generated_labels:
        raise UserError("--reverse has no effect here: the model tells directions, and is measured both ways anyway")
    if not recipe.videos:
        raise UserError("--reverse has no effect here: the model reads no videos, and nothing else can be reversed")
    return [_reversed(recipe, row) for row in rows]


def with_directions(recipe: Recipe, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows to learn from and to measure on. A recipe whose output is the direction of a video gets each row twice,
    as it was filmed and backwards.

    Call it after the split, so that no clip is in training one way and in dev the other way.
    """
    for row in rows:
        yield row
        if recipe.generated_labels == "direction":
            yield _reversed(recipe, row, **{OUTPUT: BACKWARD})


def _reversed(recipe: Recipe, row: Row, **changes: str) -> Row:
    """The same row with all its videos read the other way; changes: other values of the row."""
    values = {**row, **{name: turned(row[name]) for name in recipe.videos}, **changes}
    if not isinstance(row, Values):
        return values
    written = {name: turned(path) if name in recipe.videos else path for name, path in row.written.items()}
    return Values(values, row.table, row.line, written=written)
