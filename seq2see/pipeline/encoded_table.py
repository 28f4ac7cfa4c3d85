"""Training rows encoded from a table in one reading, and kept on disk for the next run.

The rows are read in blocks, by several processes where the table is large (data/blocks.py). What they give is numbers
of parts, which lie in a temporary file until all rows are read: only then the vocabulary and the dev rows are known.
Then the parts become ids, in arrays that are mapped from disk. Nothing but the distinct parts grows with the table.
"""

from __future__ import annotations

import gc
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import Ragged, RaggedWriter
from seq2see.data.blocks import ALL, ColumnParts, EncodedBlock, Encoders
from seq2see.data.columns import OUTPUT, Resolution, Values
from seq2see.data.formats import Block, Layout
from seq2see.data.sources import MAX_CELL
from seq2see.data.split import HoldOut, Split
from seq2see.data.tables import Table
from seq2see.errors import UserError
from seq2see.modalities.base import Field
from seq2see.modalities.text import TextField
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields, unbuilt_fields
from seq2see.pipeline.trained_rows import MAX_ROWS, Recorder, TrainedRows
from seq2see.recipe.schema import Recipe

WIDTHS = "widths.npy"
ROWS_AT_ONCE = 1 << 14
"""Rows that are encoded together where a table is not read in blocks of lines."""

OnProgress = Callable[[int, int], None]
"""Called with the rows and the bytes of blocks that are read."""


def block_columns(recipe: Recipe, resolution: Resolution, table: Table, filled: Iterable[str]) -> list[ColumnParts]:
    """The columns of a recipe that can be read in blocks: text and labels of single columns; none for all others.

    filled: names whose values must not be empty.
    """
    fields = unbuilt_fields(recipe)
    single = all(resolution.mapping.get(name) in table.columns for name in fields)
    if recipe.data.stream or recipe.copied_from is not None or recipe.loss.alignment.column is not None or not single:
        return []
    columns = [_column(name, field, needed=name in filled) for name, field in fields.items()]
    return [column for column in columns if column is not None] if None not in columns else []


def _column(name: str, field: Field, *, needed: bool) -> ColumnParts | None:
    if field.unit is None or field.unusable or field.settings.file:
        return None
    hashed = name != OUTPUT
    if not isinstance(field, TextField):
        return ColumnParts(name, field.unit, needed=needed, hashed=hashed)
    settings = field.settings
    return ColumnParts(
        name,
        field.unit,
        needed=needed,
        hashed=hashed,
        case=settings.case,
        unicode=settings.unicode,
        punctuation=settings.punctuation == "keep",
    )


@dataclass
class EncodedTable:
    """What a training takes from its table. split: None where the dev rows lie in another; parts: of the output's
    column, the values of the training rows and their counts, where each is a part."""

    fields: Fields
    train: Dataset
    split: Split | None
    trained: TrainedRows
    outputs: Mapping[str, int]


class TableEncoder:
    """Reads a table once and encodes it.

    columns: see `block_columns`; held_out: finds the rows that are set aside, None where all are trained on; folder:
    of temporary files, None where all fits into memory.
    """

    def __init__(
        self,
        table: Table,
        resolution: Resolution,
        columns: Sequence[ColumnParts],
        *,
        held_out: HoldOut | None,
        folder: Path | None,
    ):
        self.table, self.resolution, self.columns = table, resolution, columns
        self._held_out = held_out
        self._sample = _HashSample()
        self._numbers = [PartNumbers() for _ in columns]
        self._spool = _Spool(folder)
        self._filled = [column.name for column in columns if column.needed]
        self.rows = 0

    def close(self) -> None:
        self._spool.close()

    @property
    def layout(self) -> Layout | None:
        """How lines of blocks are split."""
        return self.table.layout([self.resolution.mapping[column.name] for column in self.columns])

    def read(self, *, processes: int, on_progress: OnProgress) -> None:
        """Read all rows; processes: 0: in this one."""
        with closing(Encoders(self.columns, self.layout, processes=processes, most=MAX_CELL)) as encoders:
            self.add(encoders, self.table.blocks(), on_progress)
        self.table.check_rows(self.rows + sum(blanks.rows for blanks in self.table.blanks.values()))
        self.resolution.check(self.table, self.rows)

    def add(
        self, encoders: Encoders, blocks: Iterable[Block], on_progress: OnProgress = lambda rows, size: None
    ) -> None:
        """Read the rows of some blocks."""
        size = 0
        with _no_collection():
            for block, process, encoded in encoders.map(blocks, self._limits):
                size += len(block.content or b"")
                if encoded is not None:
                    self._add_blanks(block, encoded)
                    self._add(encoded, process, lambda row, first=block.before + block.first: first + row)  # type: ignore[misc]
                    on_progress(self.rows, size)
                    continue
                for rows in self._read_rows(block):
                    values = [[row[column.name] for row in rows] for column in self.columns]
                    limit, bound = self._limits()
                    encoded = encoders.own.encode(values, limit=limit, bound=bound)
                    self._add(encoded, 0, lambda row, rows=rows: rows[row].line)  # type: ignore[misc]
                    on_progress(self.rows, size)

    def _limits(self) -> tuple[int, int]:
        return (self._held_out.limit if self._held_out is not None else 0), self._sample.bound

    def _read_rows(self, block: Block) -> Iterator[list[Values]]:
        """The rows of a block that is not plain, in the way in which all tables can be read."""
        rows = self.resolution.part(self.table, self.table.block_rows(block), filled=self._filled)
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            yield chunk

    def _add_blanks(self, block: Block, encoded: EncodedBlock) -> None:
        for column, rows, first in sorted(encoded.blanks, key=lambda blank: blank[2]):
            name = self.resolution.mapping[self.columns[column].name]
            self.table.skip_blank(name, block.before + block.first + first, rows=rows)

    def _add(self, block: EncodedBlock, process: int, line: Callable[[int], int]) -> None:
        if self._held_out is not None and block.rows:
            low = [
                (row, int(block.hashes[row]), self._values(values, line(int(block.taken[row]))))
                for row, values in block.low
            ]
            self._held_out.add_rows(block.rows, int(block.hashes.min()), int(block.hashes.max()), low)
        self._sample.add(self.rows, block.sampled, block.hashes)
        parts = [
            numbers.add(process, new, parts, anew=block.anew)
            for numbers, new, parts in zip(self._numbers, block.new, block.parts, strict=True)
        ]
        self._spool.add([block.hashes, *map(_smallest, block.lengths), *parts])
        self.rows += block.rows

    def _values(self, values: Sequence[str], line: int) -> Values:
        names = (column.name for column in self.columns)
        return Values(dict(zip(names, values, strict=True)), self.table, line, written={})

    def split(self) -> Split | None:
        """The rows that are set aside; their parts do not count any more."""
        if self._held_out is None:
            return None
        split = self._held_out.finish()
        for column, numbers in zip(self.columns, self._numbers, strict=True):
            for parts in column.parts([row[column.name] for row in split.held]):
                numbers.discount(parts)
        return split

    def counts(self) -> dict[str, dict[str, int]]:
        """By name, the parts of the training rows and their counts; call it after `split`."""
        return {column.name: numbers.counts() for column, numbers in zip(self.columns, self._numbers, strict=True)}

    def encode(self, fields: Fields, threshold: int, folder: Path | None) -> tuple[Dataset, TrainedRows]:
        """The ids of the rows whose hashes are not below the threshold, into files of `folder` if there is one."""
        every = fields.all
        symbols = [
            _Symbols(every[column.name], numbers) for column, numbers in zip(self.columns, self._numbers, strict=True)
        ]
        left_out, cut, before = 0, dict.fromkeys(fields.inputs, 0), 0
        used: list[NDArray[np.bool_]] = []
        with ExitStack() as opened:
            widths = opened.enter_context(closing(_Spool(folder)))
            paths = {name: None if folder is None else store_path(folder, name) for name in every}
            writers = {name: opened.enter_context(RaggedWriter(path)) for name, path in paths.items()}
            for hashes, *arrays in self._spool:
                lengths, parts = arrays[: len(symbols)], arrays[len(symbols) :]
                kept = hashes >= np.uint64(threshold)
                totals = [known.totals(*pair) for known, *pair in zip(symbols, lengths, parts, strict=True)]
                if symbols[-1].most:
                    fits = totals[-1] <= symbols[-1].most
                    left_out += int(np.count_nonzero(kept & ~fits))
                    kept &= fits
                made = []
                for known, part, total, column in zip(symbols, parts, totals, self.columns, strict=True):
                    most = known.most if column.name != OUTPUT else 0
                    ids, sizes = known.rows(part, total, kept, most=most)
                    writers[column.name].extend(ids, sizes)
                    made.append(every[column.name].widths(Ragged(ids, np.append(0, np.cumsum(sizes)))))
                    if most:
                        cut[column.name] += int(np.count_nonzero(kept & (total > most)))
                widths.add([_smallest(np.stack(made, axis=1).ravel())])
                used.append(self._sample.mark(before, kept))
                before += len(hashes)
            stores = {name: writer.finish() for name, writer in writers.items()}
            all_widths = _joined(widths, len(every), folder)
        cut = {name: rows for name, rows in cut.items() if rows}
        train = Dataset(fields, stores, left_out=left_out, cut=cut, widths=all_widths)
        return train, self._sample.finish(used)


def _smallest(widths: NDArray[np.integer]) -> NDArray[np.integer]:
    """The same numbers in the smallest type that holds them."""
    return widths.astype(np.min_scalar_type(int(widths.max(initial=0))))


def _joined(widths: _Spool, columns: int, folder: Path | None) -> NDArray[np.integer]:
    """The widths of all rows, of a type that holds the largest: (rows, columns); of `folder`, mapped from its file."""
    kind = np.result_type(np.uint8, *(kinds[0] for kinds in widths.kinds))
    if folder is None:
        return np.concatenate([np.empty(0, dtype=kind), *(block for (block,) in widths)]).reshape(-1, columns)
    with (folder / WIDTHS).open("wb") as file:
        shape = (widths.size // columns, columns)
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for (block,) in widths:
            file.write(block.astype(kind).data)
    return np.asarray(np.load(folder / WIDTHS, mmap_mode="r", allow_pickle=False))


def store_path(folder: Path, name: str) -> Path:
    """The path of a column's ids; names of inputs are arbitrary, so unsafe characters are escaped."""
    return folder / f"ids-{quote(name, safe='')}"


class _no_collection:  # noqa: N801 - used like a function
    """Pauses the collector of cycles: rows are many small lists, none of which is in a cycle."""

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *raised: object) -> None:
        if self._enabled:
            gc.enable()


class PartNumbers:
    """The numbers of all parts of a column, in the order in which they are met, and how often each occurs."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._counts: NDArray[np.int64] = np.zeros(1 << 10, dtype=np.int64)
        self._known: dict[int, NDArray[np.int32]] = {}

    def add(self, process: int, new: Sequence[str], parts: NDArray[np.int32], *, anew: bool) -> NDArray[np.int32]:
        """Count parts that a process has numbered, and number them as all processes do. new: those that it had not
        told yet; anew: it has forgotten all that it told before."""
        numbers = self.numbers
        known = self._known[process] if process in self._known and not anew else np.empty(0, dtype=np.int32)
        if new:
            added = [numbers.setdefault(part, len(numbers)) for part in new]
            known = np.concatenate([known, np.array(added, dtype=np.int32)])
        self._known[process] = known
        numbered = known[parts]
        if len(numbers) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(len(numbers), dtype=np.int64)])
        if len(numbers) > 4 * len(numbered):
            unique, counts = np.unique(numbered, return_counts=True)
            self._counts[unique] += counts
        else:
            counts = np.bincount(numbered)
            self._counts[: len(counts)] += counts
        return numbered

    def discount(self, parts: Iterable[str]) -> None:
        """Take parts that were counted away again."""
        for part in parts:
            self._counts[self.numbers[part]] -= 1

    def counts(self) -> dict[str, int]:
        return {part: count for part, number in self.numbers.items() if (count := int(self._counts[number]))}


class _Symbols:
    """The ids of the symbols of each part, one after the other.

    most: symbols of a value that are read, or that an output may have; 0: any number.
    """

    def __init__(self, field: Field, numbers: PartNumbers):
        self.most = field.settings.max_length if isinstance(field, TextField) else 0
        ids, sizes, counts = array("i"), array("i"), numbers.counts()
        for part in numbers.numbers:
            symbols = field.part_ids(part) if part in counts else [0]  # of rows that are set aside, never stored
            ids.extend(symbols)
            sizes.append(len(symbols))
        self._ids, self._sizes = np.array(ids, dtype=np.int32), np.array(sizes, dtype=np.int32)
        self._starts = np.cumsum(self._sizes, dtype=np.int64) - self._sizes
        self._single = bool((self._sizes == 1).all())

    def totals(self, lengths: NDArray[np.integer], parts: NDArray[np.int32]) -> NDArray[np.int64]:
        """Symbols of rows that have so many parts each: (rows,)"""
        if self._single:
            return lengths.astype(np.int64)
        ends = np.append(0, np.cumsum(self._sizes[parts], dtype=np.int64))
        rows = np.append(0, np.cumsum(lengths, dtype=np.int64))
        return np.asarray(np.diff(ends[rows]))

    def rows(
        self, parts: NDArray[np.int32], totals: NDArray[np.int64], kept: NDArray[np.bool_], *, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(ids of the rows that are kept, up to `most` of each; their numbers)."""
        if self._single:
            ids = self._ids[parts]
        else:
            sizes = self._sizes[parts]
            ends = np.cumsum(sizes, dtype=np.int64)
            ids = self._ids[np.repeat(self._starts[parts] - ends + sizes, sizes) + np.arange(sizes.sum())]
        if not most and kept.all():
            return ids, totals
        chosen = np.repeat(kept, totals)
        if most:
            places = np.arange(len(ids)) - np.repeat(np.cumsum(totals) - totals, totals)
            chosen &= places < most
            totals = np.minimum(totals, most)
        return ids[chosen], totals[kept]


class _HashSample:
    """The hashes of rows by which evaluation knows them again, as `Recorder` keeps them: those up to a bound, which
    falls as rows come. Which of them are trained on is known only once all are read.

    bound: the largest hash of inputs that may be kept.
    """

    def __init__(self) -> None:
        self.bound = ALL
        self._added: list[NDArray[np.uint64]] = []
        self._size = 0

    def add(self, before: int, sampled: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> None:
        """before: rows that were added before these; sampled: see `EncodedBlock`."""
        self._added.append(np.stack([sampled[0] + np.uint64(before), sampled[1], sampled[2]]))
        self._size += sampled.shape[1]
        if self._size > 2 * MAX_ROWS:
            self._trim()

    def _trim(self) -> None:
        rows = np.concatenate(self._added, axis=1)
        recorder = Recorder(highest=self.bound)
        recorder.add_hashes(rows[1], rows[2])
        self.bound = recorder.highest
        self._added = [rows[:, rows[1] <= np.uint64(self.bound)]]
        self._size = self._added[0].shape[1]

    def mark(self, before: int, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the sampled rows among these are trained on; called for all rows in their order."""
        if len(self._added) > 1:
            self._added = [np.concatenate(self._added, axis=1)]
        rows = self._added[0][0]
        first, last = np.searchsorted(rows, np.array([before, before + len(kept)], dtype=np.uint64))
        return np.asarray(kept[(rows[first:last] - np.uint64(before)).astype(np.int64)])

    def finish(self, used: Sequence[NDArray[np.bool_]]) -> TrainedRows:
        """The hashes of the rows that are trained on; used: what `mark` gave."""
        recorder = Recorder(highest=self.bound)
        if used:
            rows = self._added[0][:, np.concatenate(used)]
            recorder.add_hashes(rows[1], rows[2])
        return recorder.finish()


class _Spool:
    """Blocks of arrays, in memory or in a temporary file, read in the order in which they were added."""

    def __init__(self, folder: Path | None):
        self._blocks: list[list[NDArray[Any]]] = []
        self._sizes: list[list[tuple[np.dtype[Any], int]]] = []
        self._file: IO[bytes] | None = None
        if folder is not None:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`

    @property
    def kinds(self) -> set[tuple[np.dtype[Any], ...]]:
        """The types that the arrays of blocks have."""
        return {tuple(kind for kind, _ in block) for block in self._sizes}

    @property
    def size(self) -> int:
        """Numbers in all arrays."""
        return sum(size for block in self._sizes for _, size in block)

    def add(self, arrays: Sequence[NDArray[Any]]) -> None:
        self._sizes.append([(array.dtype, len(array)) for array in arrays])
        if self._file is None:
            self._blocks.append(list(arrays))
            return
        for one in arrays:
            self._file.write(np.ascontiguousarray(one).data)

    def __iter__(self) -> Iterator[list[NDArray[Any]]]:
        if self._file is None:
            yield from self._blocks
            return
        self._file.seek(0)
        for block in self._sizes:
            yield [np.frombuffer(self._file.read(kind.itemsize * size), dtype=kind) for kind, size in block]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def encode_table(
    recipe: Recipe,
    table: Table,
    resolution: Resolution,
    columns: Sequence[ColumnParts],
    *,
    fields: Fields | None,
    held_out: HoldOut | None,
    read_rows: Callable[[Split | None], Iterator[Mapping[str, str]]],
    folder: Path | None,
    processes: int,
    on_progress: OnProgress,
) -> EncodedTable:
    """Read a table and encode its training rows.

    fields: those of an earlier model instead of new ones; held_out: finds the rows that are set aside; read_rows: reads
    the training rows of a split once more, which a tokeniser wants that is learned; folder: for files of ids, and
    temporary ones.
    """
    with closing(TableEncoder(table, resolution, columns, held_out=held_out, folder=folder)) as encoder:
        encoder.read(processes=processes, on_progress=on_progress)
        split = encoder.split()
        if split is not None:
            split.check()
        counts = encoder.counts()
        if fields is None:
            fields = Fields.build(recipe, lambda: read_rows(split), parts=counts)
        try:
            train, trained = encoder.encode(fields, split.threshold if split is not None else 0, folder)
        except UserError:  # a value that these fields do not know: the reading of single rows names its line
            Dataset.build(fields, read_rows(split))
            raise
        outputs = counts[OUTPUT] if recipe.output.classes else {}
        return EncodedTable(fields, train, split, trained, outputs)
