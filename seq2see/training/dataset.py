"""The data of a run, from its tables: fields, encoded training rows, dev rows and baselines.

Rows with an empty cell, and bad rows where `data.on_error` is skip, are left out while a table is read
(`Resolution.rows` in data/columns.py) and counted by the table, whose notes become those of the `Corpus`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import in_pieces
from seq2see.data.blocks import ColumnParts
from seq2see.data.columns import ALIGNMENT, OUTPUT, Check, Joined, Resolution, Values, has_column, place_of, resolve
from seq2see.data.records import Data, as_lines, records_of, table_of
from seq2see.data.split import HoldOut, Split, hold_out_tail
from seq2see.data.tables import Table, read
from seq2see.data.vocabulary import PAD, SOS, SPECIALS, UNK
from seq2see.errors import UserError, counted, nearest
from seq2see.evaluation import BASELINES, Baseline, TrainingRows, Unigram
from seq2see.files import unwritable
from seq2see.modalities.base import Field
from seq2see.modalities.files import decode_once
from seq2see.modalities.label import FORWARD
from seq2see.modalities.text import TextField
from seq2see.pipeline.alignments import TimeReader
from seq2see.pipeline.dataset import Dataset, Stream, with_directions
from seq2see.pipeline.encoded_table import block_columns, encode_table
from seq2see.pipeline.fields import Fields, unbuilt_fields
from seq2see.pipeline.frozen_features import cache_folder
from seq2see.pipeline.table_cache import MOST_BYTES, StoredTable, TableCache
from seq2see.pipeline.table_stream import TableStream
from seq2see.pipeline.trained_rows import Recorder, TrainedRows, ambiguous_inputs, training_overlap
from seq2see.progress import ReadingProgress
from seq2see.recipe import Recipe
from seq2see.recipe.fitting import TableFacts
from seq2see.recipe.schema import OF_LOOKS, baseline_of, measures_of
from seq2see.settings.columns import TextSettings
from seq2see.threads import cores

ON_DISK_FROM = 256 << 20
"""Tables of at least so many bytes are encoded into files and mapped, not held in memory."""

IN_MEMORY_TO = 16 << 20
"""The rows of tables of at most so many bytes stay in memory until they are encoded ..."""
MAX_EXPANSION = 4
"""... unless they are more than so many times as long once they are unpacked."""
BLOCK_CHARACTERS = 1 << 20
"""Rows of larger tables are written to a temporary file in blocks of so many characters."""

DEV_CHARACTERS = 1 << 21
"""Dev text of a stream that is used for reports, which come often and hold it in memory."""

COUNTED_AT_ONCE = 1 << 22

CACHED_FROM = 16 << 20
"""Tables of texts and labels of at least so many bytes are read by several processes, and kept as they are encoded."""

Rows = Callable[[], Iterator[Mapping[str, str]]]


@dataclass
class Corpus:
    """The data of a run.

    recipe: with the columns of the table; train: encoded rows or a stream; dev: rows as they are read (of a stream its
    lines); trained: hashes of the training rows; notes: messages for the user; first: of a table that is read as it is
    needed, the rows of the first window.
    """

    recipe: Recipe
    fields: Fields
    train: Dataset | Stream | TableStream
    dev: list[Mapping[str, str]]
    baselines: list[Baseline]
    trained: TrainedRows
    notes: list[str] = field(default_factory=list)
    first: Dataset | None = None

    @property
    def facts(self) -> TableFacts:
        """What settings that are `auto` are fitted to; estimated from the first window where rows are read as they are
        needed."""
        if isinstance(self.train, Stream):
            return TableFacts(rows=len(self.train), symbols=len(self.train), tokens=len(self.train))
        rows = self.first if isinstance(self.train, TableStream) else self.train
        assert rows is not None
        widths, times = rows.widths, len(self.train) / max(len(rows), 1)
        symbols, tokens = (int(times * part.sum(dtype=np.int64)) for part in (widths[:, -1], widths))
        return TableFacts(rows=len(self.train), symbols=symbols, tokens=tokens)


def wanted_columns(recipe: Recipe) -> list[tuple[str, str]]:
    """(name in the recipe, column it names), inputs first, the output last, unless it is derived from the inputs."""
    inputs = [(name, settings.column or name) for name, settings in recipe.inputs.items()]
    return inputs if recipe.generated_labels else [*inputs, (OUTPUT, recipe.output.column or OUTPUT)]


def with_columns(recipe: Recipe, table: Table, resolution: Resolution) -> Recipe:
    """The recipe with the columns of a table, by which its model finds them in other tables.

    Columns without a name in the table (the lines of a .txt) stay as the recipe has them.
    """
    columns = {
        name: resolution.mapping[name]
        for name, column in wanted_columns(recipe)
        if table.named and resolution.mapping.get(name, column) != column
    }
    inputs = {
        name: settings.model_copy(update={"column": columns[name]}) if name in columns else settings
        for name, settings in recipe.inputs.items()
    }
    output = recipe.output.model_copy(update={"column": columns[OUTPUT]}) if OUTPUT in columns else recipe.output
    return recipe.model_copy(update={"inputs": inputs, "output": output})


def open_table(
    recipe: Recipe,
    path: str | Path | Table,
    columns: Sequence[str] | None,
    *,
    optional: Sequence[str] = (),
    fields: Fields | None = None,
    numbers: Mapping[str, Check] | None = None,
) -> tuple[Table, Resolution]:
    """A table, and which of its columns are those of the recipe; alignment links are optional.

    fields: of a model, which know how many numbers a row has; numbers: the checks of an earlier table, which do too.
    """
    table = path if isinstance(path, Table) else read(path, settings=recipe.data)
    links = recipe.loss.alignment.column
    others = [column for column in table.columns if column != links]
    new = unbuilt_fields(recipe)
    lists, several = lists_in(new), several_in(new)
    resolution = resolve(
        others, wanted_columns(recipe), columns, path=table.path, optional=optional, several=several.keys()
    )
    if links is not None and links in table.columns:
        resolution = replace(resolution, mapping={**resolution.mapping, ALIGNMENT: links})
    if resolution.note and table.headed:  # names that nobody asked for may be a row of a table without a header
        note = f"{resolution.note}; the first line of {table.path.name} was read as their names"
        resolution = replace(resolution, note=note)
    numbers = checks_in(new if fields is None else fields.all) if numbers is None else numbers
    known = {OUTPUT: FORWARD} if recipe.generated_labels else {}
    return table, replace(resolution, lists=lists, several=several, files=files_in(new), numbers=numbers, known=known)


def held_table(
    recipe: Recipe,
    data: Data,
    columns: Sequence[str] | None,
    *,
    fields: Fields | None = None,
    optional: Sequence[str] = (),
) -> tuple[Table, Resolution]:
    """The same for rows in memory, whose keys are columns or the recipe's own names, or which have none and are in the
    recipe's order."""
    keys, least = _keys(recipe, columns, optional)
    table = table_of(data, settings=recipe.data, names=keys, least=least)
    names = [name for name, _ in wanted_columns(recipe) if name not in optional or name in table.columns]
    if columns is None and all(name in table.columns for name in names):
        columns = names
    table, resolution = open_table(recipe, table, columns, optional=optional, fields=fields)
    if ALIGNMENT in table.columns:
        resolution = replace(resolution, mapping={**resolution.mapping, ALIGNMENT: ALIGNMENT})
    return table, resolution


def lines_of(recipe: Recipe, data: Data, columns: Sequence[str] | None, *, what: str) -> bytes:
    """Rows in memory as the content of a JSONL table."""
    records = records_of(data, what=what, names=_keys(recipe, columns)[0])
    mapping = resolve(list(records[0]), wanted_columns(recipe), columns, path=what).mapping
    files = [name for name, field in unbuilt_fields(recipe).items() if field.settings.file and name in mapping]
    return as_lines(records, files=[mapping[name] for name in files])


def _keys(recipe: Recipe, columns: Sequence[str] | None, optional: Sequence[str] = ()) -> tuple[list[str], int]:
    """(names for the values of rows that have none, in the recipe's order; how many of them each row has at least)."""
    wanted = wanted_columns(recipe)
    names = list(dict.fromkeys(column for _, column in wanted))
    needed = {column for name, column in wanted if name not in optional}
    return (list(columns), len(columns)) if columns is not None else (names, len(needed))


def lists_in(fields: Mapping[str, Field]) -> dict[str, Joined]:
    """Columns whose values may be lists, with the function that joins a list."""
    return {name: field.from_items for name, field in fields.items() if field.elements is not None}


def several_in(fields: Mapping[str, Field]) -> dict[str, Joined]:
    """Inputs and outputs that may lie in several columns, with the function that joins their cells."""
    return {name: field.from_columns for name, field in fields.items() if field.elements is not None}


def checks_in(fields: Mapping[str, Field]) -> dict[str, Check]:
    """Columns of values (not files) that may be unusable, with the function that returns the problem. The fields of a
    model know how many numbers a row has, new ones learn it from the first row."""
    return {name: field.problem for name, field in fields.items() if field.unusable and not field.settings.file}


def files_in(fields: Mapping[str, Field]) -> dict[str, Check]:
    """Columns of files, with the function that returns the problem of a file; each file is checked once."""
    return {name: cache(field.problem) for name, field in fields.items() if field.settings.file}


def read_corpus(
    recipe: Recipe,
    data: str | Path,
    *,
    dev: str | Path | None = None,
    columns: Sequence[str] | None = None,
    fields: Fields | None = None,
    folder: Path | None = None,
) -> Corpus:
    """Read the tables, split off the dev rows and encode the training rows. A table is read once.

    fields: those of an earlier model (resuming, fine-tuning) instead of new ones; folder: of the run, for files of rows
    and ids that are too many for memory.
    """
    table, resolution = open_table(recipe, data, columns, fields=fields)
    recipes = [with_columns(recipe, table, resolution), recipe]
    notes = [resolution.note] if resolution.note else []
    notes += _check_aligned(recipe, table, resolution)
    decoding = decode_once(folder) if resolution.files else nullcontext()
    with decoding, closing(_Reader(recipes[0], resolution, table, folder=folder)) as rows:
        if resolution.numbers and dev is not None:  # the first row fixes how many numbers a row has, for --dev too
            with closing(rows()) as reading:
                next(reading)
        dev_rows = _dev_reader(recipes, dev, columns, resolution)
        parts = block_columns(recipes[0], resolution, table, filled(recipes[0]))
        if recipe.data.shuffle_rows:
            if not parts or folder is None:
                allowed = (
                    "texts and labels, each in one column, in training" if folder is not None else "training alone"
                )
                raise UserError(f"data.shuffle_rows: {recipe.data.shuffle_rows:,}: rows are streamed for {allowed}")
            return _read_windows(recipes[0], rows, parts, dev=dev_rows, fields=fields, notes=notes)
        if parts:
            corpus = _read_blocks(recipes[0], rows, parts, dev=dev_rows, fields=fields, notes=notes)
            return _with_ambiguous(corpus, rows, split=dev is None)
        read = _read_stream if recipe.data.stream else _read_rows
        corpus = read(recipes[0], rows, dev=dev_rows, fields=fields, cache=_cache(table, folder), notes=notes)
        if isinstance(corpus.fields.alignment, TimeReader) and isinstance(corpus.train, Dataset):
            try:
                corpus.fields.alignment.check_unit(corpus.train.stores[ALIGNMENT])
            except UserError as error:
                raise UserError(f"{table.path}: {error}") from None
        return _with_ambiguous(corpus, rows, split=dev is None)


def _with_ambiguous(corpus: Corpus, rows: _Reader, *, split: bool) -> Corpus:
    """The same with a note on inputs of the table that have several outputs. split: the dev rows are of that table."""
    small = sum(path.stat().st_size for path in rows.table.files) <= IN_MEMORY_TO
    held = corpus.dev if split else []
    with closing(rows()) as every:
        notes = ambiguous_inputs(corpus.recipe, corpus.trained, held, every if small else ())
    return replace(corpus, notes=[*corpus.notes, *_unspaced(corpus), *notes])


SYMBOLS_FROM = 100
"""Rows from which it can be told whether symbols are separated by spaces."""


def _unspaced(corpus: Corpus) -> list[str]:
    """A note on columns of symbols between spaces that hold few that come again: whole words, most likely."""
    rows = len(corpus.train) if isinstance(corpus.train, Dataset) else 0
    notes = []
    for name, texts in corpus.fields.all.items():
        if isinstance(texts, TextField) and texts.settings.tokens == "symbol" and rows >= SYMBOLS_FROM:
            number = len(texts.vocabulary) - len(SPECIALS)
            if number > rows / 2:
                key = name if name == OUTPUT else f"inputs.{name}"
                notes.append(
                    f"{texts.settings.column or name}: {number:,} symbols in {rows:,} rows, hardly any of which comes "
                    f"again: symbols stand between spaces; --set {key}.tokens=character reads every letter as one"
                )
    return notes


def _read_blocks(
    recipe: Recipe,
    rows: _Reader,
    columns: Sequence[ColumnParts],
    *,
    dev: _Reader | None,
    fields: Fields | None,
    notes: list[str],
) -> Corpus:
    """The data of a recipe of texts and labels, whose table is read in blocks, and of a large one only once: what it
    is encoded to is kept."""
    dev_rows: list[Mapping[str, str]] = list(dev()) if dev is not None else []
    size = sum(path.stat().st_size for path in rows.table.files)
    if size < CACHED_FROM:
        stored = _encode(recipe, rows, columns, split=dev is None, fields=fields)
    else:
        stored, cached = _cached(recipe, rows, columns, split=dev is None, fields=fields, size=size)
        notes = [*notes, *cached]
    notes = [*notes, *stored.notes, *(dev.table.notes if dev else [])]
    if not len(stored.train):
        raise UserError("; ".join([f"{rows.table.path}: no rows are left to train on", *notes]))
    if dev is not None:
        notes += _known_dev(recipe, stored.trained, dev_rows)
    dev_rows = dev_rows if dev is not None else list(stored.dev)
    return Corpus(recipe, stored.fields, stored.train, dev_rows, stored.baselines, stored.trained, notes)


def _hold_out(recipe: Recipe) -> HoldOut:
    """Finds the rows that are set aside for dev."""
    names = list(recipe.inputs) or [OUTPUT]
    return HoldOut(names=names, share=recipe.data.dev_share, most=recipe.data.dev_most)


def split_rows(recipe: Recipe, rows: Iterable[Mapping[str, str]]) -> Split:
    """The rows of a run that has no dev table, split into those to train on and those set aside for dev."""
    held_out = _hold_out(recipe)
    for row in rows:
        held_out.add(row)
    split = held_out.finish()
    split.check()
    return split


def _read_windows(
    recipe: Recipe,
    rows: _Reader,
    columns: Sequence[ColumnParts],
    *,
    dev: _Reader | None,
    fields: Fields | None,
    notes: list[str],
) -> Corpus:
    """The data of a run that reads rows as it needs them: vocabulary, dev rows and baselines are those of the first
    window, labels those of the whole table."""
    table = rows.table
    stream = TableStream(table, rows.resolution, columns, rows=recipe.data.shuffle_rows)
    labels = _count(stream, fields, rows)
    window = next(stream.windows())
    dev_rows: list[Mapping[str, str]] = list(dev()) if dev is not None else []
    held_out = _hold_out(recipe) if dev is None else None

    def read_rows(split: Split | None) -> Iterator[Mapping[str, str]]:
        pieces = (table.block_rows(piece.fresh) for piece in window.pieces)
        window_rows = (row for piece in pieces for row in rows.resolution.part(table, piece, filled=filled(recipe)))
        return window_rows if split is None else split.train(window_rows)

    with closing(stream.read(window, held_out=held_out)) as encoder:
        split = encoder.split()
        if split is not None:
            split.check()
            dev_rows = list(split.held)
        counts = encoder.counts()
        if fields is None:
            fields = Fields.build(recipe, lambda: read_rows(split), parts=counts | ({OUTPUT: labels} if labels else {}))
        threshold = split.threshold if split is not None else 0
        first, _ = encoder.encode(fields, threshold, None)
    if not len(first):
        raise UserError(f"{table.path}: no rows are left to train on among the first {window.rows:,}")
    stream.use(fields, threshold)
    notes = [
        *notes,
        f"rows are read as they are needed, shuffled among {window.rows:,} at a time (data.shuffle_rows)",
        f"the vocabulary is that of the first {window.rows:,} rows{', and so are the dev rows' if dev is None else ''}",
        *([split.note] if split is not None else []),
        *table.notes,
        *(dev.table.notes if dev else []),
    ]
    outputs = Counter(counts[OUTPUT]) if recipe.output.classes else Counter()
    baselines = _baselines(recipe, first, lambda: read_rows(split), outputs)
    unknown = TrainedRows(np.empty(0, np.uint64), np.empty(0, np.uint64), highest=0)
    return Corpus(recipe, fields, stream, dev_rows, baselines, unknown, notes, first=first)


def _count(stream: TableStream, fields: Fields | None, rows: _Reader) -> dict[str, int]:
    """Count the rows and the labels of a whole table; one that an earlier model does not know is refused now, not when
    training comes to its row."""
    size = sum(path.stat().st_size for path in stream.table.files)
    large = size >= CACHED_FROM
    with closing(ReadingProgress(size)) as progress:
        labels = stream.count(processes=cores() if large else 0, on_progress=progress)
    if fields is not None:
        try:
            for label in labels:
                fields.output.part_ids(label)
        except UserError:  # the reading of single rows names its line
            Dataset.build(fields, rows())
            raise
    return labels


def _cached(
    recipe: Recipe, rows: _Reader, columns: Sequence[ColumnParts], *, split: bool, fields: Fields | None, size: int
) -> tuple[StoredTable, list[str]]:
    """A table as it was encoded by an earlier run, or encoded now and kept; and notes on that.

    Of processes that want the same table, one encodes it, and the others wait for it."""
    entry = partial(
        TableCache.of, cache_folder() / "tables", recipe, rows.table, columns, rows.resolution.mapping, split=split
    )
    before = _state(rows.table)
    caches = [entry()] if fields is None else [entry(), entry(fields=fields)]
    stored, notes = _load_cached(caches, recipe, rows.table, fields)
    if stored is not None:
        return stored, notes
    cache = caches[-1]
    try:
        folder = cache.begin()
    except OSError as error:
        notes.append(
            f"{cache.root}: cannot be written ({error.strerror or error}), so the encoded rows are held in memory and "
            "not kept for the next run; the variable SEQ2SEE_CACHE names another folder"
        )
        return _encode(recipe, rows, columns, split=split, fields=fields), notes
    try:
        with cache.alone():
            stored, notes = _load_cached(caches, recipe, rows.table, fields)
            if stored is not None:  # another process has encoded it meanwhile
                return stored, notes
            with closing(ReadingProgress(size)) as progress:
                stored = _encode(recipe, rows, columns, split=split, fields=fields, folder=folder, progress=progress)
            if _state(rows.table) != before:
                raise UserError(f"{rows.table.path}: changed while it was read; start again once it is complete")
            kept = cache.save(folder, stored)
    except OSError as error:
        raise unwritable(folder, error) from None
    finally:
        cache.discard(folder)
    notes.append(
        f"{rows.table.path.name}: encoded rows ({kept / 1e9:.2f} GB) are kept for the next run in {cache.folder}; "
        f"all such files take at most {MOST_BYTES / 1e9:.0f} GB"
    )
    mapped = cache.load(recipe, rows.table, check=False)  # all that is in memory now is freed
    return (stored if mapped is None else mapped), notes


def _load_cached(
    caches: Sequence[TableCache], recipe: Recipe, table: Table, fields: Fields | None
) -> tuple[StoredTable | None, list[str]]:
    """What one of these entries has, and notes on that; None where none is there and whole."""
    notes: list[str] = []
    for entry in caches:
        try:
            stored = entry.load(recipe, table, fields=fields)
        except UserError as error:
            notes.append(f"{error}; the table is encoded again")
            continue
        if stored is not None:
            return stored, [f"{table.path.name}: {len(stored.train):,} rows, as encoded before: {entry.folder}"]
    return None, notes


def _state(table: Table) -> list[tuple[int, int]]:
    """Size and time of each file of a table."""
    return [(status.st_size, status.st_mtime_ns) for status in (path.stat() for path in table.files)]


def _encode(
    recipe: Recipe,
    rows: _Reader,
    columns: Sequence[ColumnParts],
    *,
    split: bool,
    fields: Fields | None,
    folder: Path | None = None,
    progress: Callable[[int, int], None] = lambda rows, size: None,
) -> StoredTable:
    """Read a table; folder: for files of ids, where it is large."""
    held_out = _hold_out(recipe) if split else None

    def read_rows(split: Split | None) -> Iterator[Mapping[str, str]]:
        return rows() if split is None else split.train(rows())

    encoded = encode_table(
        recipe,
        rows.table,
        rows.resolution,
        columns,
        fields=fields,
        held_out=held_out,
        read_rows=read_rows,
        folder=folder,
        processes=0 if folder is None else cores(),
        on_progress=progress,
    )
    notes = [*_shortened(recipe, encoded.train), *rows.table.notes]
    dev: list[Values] = []
    if encoded.split is not None:
        notes.insert(0, encoded.split.note)
        dev = [row for row in encoded.split.held if isinstance(row, Values)]
    outputs = Counter(encoded.outputs)
    baselines: list[Baseline] = []
    if len(encoded.train):
        baselines = _baselines(recipe, encoded.train, lambda: read_rows(encoded.split), outputs)
    return StoredTable(encoded.fields, encoded.train, dev, baselines, encoded.trained, notes)


def _read_rows(
    recipe: Recipe, rows: _Reader, *, dev: _Reader | None, fields: Fields | None, cache: Path | None, notes: list[str]
) -> Corpus:
    train_rows, dev_rows, split_notes = _split(recipe, rows, dev)
    fields = fields if fields is not None else Fields.build(recipe, train_rows)
    dev_rows, dev_notes = _usable(recipe, fields, dev_rows)
    recorder, outputs = Recorder.of(recipe), Counter[str]()

    def used(row: Mapping[str, str]) -> None:
        recorder.add(row)
        if recipe.output.classes:
            outputs[row[OUTPUT]] += 1

    train = Dataset.build(fields, train_rows(), folder=cache, used=used)
    trained = recorder.finish()
    notes = [
        *notes,
        *split_notes,
        *_shortened(recipe, train),
        *rows.table.notes,
        *(dev.table.notes if dev else []),
        *dev_notes,
    ]
    if not len(train):
        raise UserError("; ".join([f"{rows.table.path}: no rows are left to train on", *notes]))
    if dev is not None:
        notes += _known_dev(recipe, trained, dev_rows)
    return Corpus(recipe, fields, train, dev_rows, _baselines(recipe, train, train_rows, outputs), trained, notes)


def _usable(
    recipe: Recipe, fields: Fields, dev: Sequence[Mapping[str, str]]
) -> tuple[list[Mapping[str, str]], list[str]]:
    """(the dev rows that a model of these fields can read, notes): numbers may be too far from those trained on, which
    is known only now."""
    checks, usable, reasons = checks_in(fields.inputs), [], []
    for number, row in enumerate(dev, start=1):
        reasons_of = ((name, check(row[name])) for name, check in checks.items() if row[name].strip())
        bad = next(((name, reason) for name, reason in reasons_of if reason is not None), None)
        if bad is None:
            usable.append(row)
        else:
            reasons.append(f"{place_of(row, number)}, column '{recipe.inputs[bad[0]].column or bad[0]}': {bad[1]}")
    if not reasons:
        return usable, []
    lines = f"dev: {counted(len(reasons), 'row')} with numbers that cannot be used, the first: {reasons[0]}"
    if recipe.data.on_error == "stop" or not usable:
        raise UserError(f"{lines}; leave them out with --set data.on_error=skip")
    return usable, [f"left out: {lines}"]


def _known_dev(recipe: Recipe, trained: TrainedRows, dev: Sequence[Mapping[str, str]]) -> list[str]:
    """Notes on rows of --dev that are trained on too (rows that are set aside never are)."""
    seen = training_overlap([(recipe, trained)], dev)
    what = "line" if recipe.data.stream else "row"
    return [] if seen is None else [f"dev: {line}" for line in seen.lines(what)]


def _check_aligned(recipe: Recipe, table: Table, resolution: Resolution) -> list[str]:
    """A note where the column of alignments is missing and may be."""
    column = recipe.loss.alignment.column
    if column is None or ALIGNMENT in resolution.mapping:
        return []
    if not recipe.loss.alignment.optional:
        raise UserError(
            f"{table.path}: no column '{column}'{nearest(column, table.columns)}, which loss.alignment.column names; "
            f"the table has: {', '.join(table.columns)}"
        )
    return [f"no column '{column}': nothing is known of where to look (loss.alignment.optional)"]


def _cache(table: Table, folder: Path | None) -> Path | None:
    """The folder of files of ids, for tables that are too large for memory; None for others."""
    size = sum(path.stat().st_size for path in table.files)
    return folder / "cache" if folder is not None and size >= ON_DISK_FROM else None


class _RowStore:
    """Rows of a table, kept for further passes: those of a small table in memory, others in a temporary file.

    in_memory: whether the table is small; folder: of the temporary file, which the system removes when it is closed.
    failed: the rows could not be written (a full disk), so that the table has to be read again.
    """

    def __init__(self, table: Table, *, in_memory: bool, folder: Path | None):
        self.table, self.folder, self.failed = table, folder, False
        self._in_memory = in_memory
        self._rows: list[Values] = []
        self._characters = 0
        self._file: IO[bytes] | None = None
        self._blocks: list[tuple[int, int]] = []

    def add(self, row: Values) -> None:
        if self.failed:
            return
        self._rows.append(row)
        self._characters += sum(map(len, row.values()))
        self._in_memory = self._in_memory and self._characters <= MAX_EXPANSION * IN_MEMORY_TO
        if not self._in_memory and self._characters >= BLOCK_CHARACTERS:
            self._write()

    def _write(self) -> None:
        """Write the rows in memory as one block."""
        rows = [(row.line, row, row.written) for row in self._rows]
        content = json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 - closed by `close`
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(content)
            self._file.flush()
            self._blocks.append((start, len(content)))
        except OSError:
            self.failed = True
        self._rows, self._characters = [], 0

    def rows(self) -> Generator[Values, None, None]:
        for start, size in self._blocks:
            assert self._file is not None
            self._file.seek(start)
            for line, values, written in json.loads(self._file.read(size)):
                yield Values(values, self.table, line, written=written)
        yield from self._rows

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _Reader:
    """The rows of a table. The table is read once; further passes take the rows from a `_RowStore`.

    keep: whether there are further passes; folder: for temporary files.
    """

    def __init__(
        self, recipe: Recipe, resolution: Resolution, table: Table, *, keep: bool = True, folder: Path | None = None
    ):
        self.table, self._recipe, self.resolution = table, recipe, resolution
        self._keep, self._folder = keep, folder
        self._store: _RowStore | None = None

    def __call__(self) -> Generator[Values, None, None]:
        return self._read() if self._store is None else self._store.rows()

    def _read(self) -> Generator[Values, None, None]:
        rows = self.resolution.rows(self.table, filled=filled(self._recipe))
        if not self._keep:
            yield from rows
            return
        small = sum(path.stat().st_size for path in self.table.files) <= IN_MEMORY_TO
        store = _RowStore(self.table, in_memory=small, folder=self._folder)
        try:
            for row in rows:
                store.add(row)
                yield row
            if not store.failed:
                self._store = store
        finally:
            if self._store is not store:  # not all rows were read, or they could not be written
                store.close()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


def filled(recipe: Recipe) -> tuple[str, ...]:
    """Names whose values must not be empty. The lines of a stream may be empty, as their ends are symbols."""
    return () if recipe.data.stream else (*recipe.needed, OUTPUT)


def _dev_reader(
    recipes: Sequence[Recipe], dev: str | Path | None, columns: Sequence[str] | None, train: Resolution
) -> _Reader | None:
    """The rows of --dev. Its columns are those of the first recipe that names them: as in the training table, or as in
    the recipe itself."""
    if dev is None:
        return None
    header = read(dev, settings=recipes[0].data).columns
    named = (recipe for recipe in recipes if all(has_column(name, header) for _, name in wanted_columns(recipe)))
    recipe = next(named, recipes[0])
    table, resolution = open_table(recipe, dev, columns, numbers=train.numbers)
    if any(name in OF_LOOKS for name in measures_of(recipe)):
        _check_aligned(recipe, table, resolution)
    return _Reader(recipe, resolution, table, keep=False)


def _shortened(recipe: Recipe, train: Dataset) -> list[str]:
    """Notes on what `max_length` did to the rows."""
    notes = []
    for name, cut in train.cut.items():
        limit = train.fields.inputs[name].limit
        notes.append(f"{cut:,} of {len(train):,} inputs '{name}' were longer than {limit} and were cut")
    if train.left_out:
        most = recipe.output.max_length if isinstance(recipe.output, TextSettings) else 0
        notes.append(f"{counted(train.left_out, 'row')} left out: the output is longer than output.max_length {most}")
    return notes


def _split(recipe: Recipe, rows: Rows, dev: Rows | None) -> tuple[Rows, list[Mapping[str, str]], list[str]]:
    if dev is not None:
        return (lambda: with_directions(recipe, rows())), list(with_directions(recipe, dev())), []
    split = split_rows(recipe, rows())
    dev_rows = list(with_directions(recipe, split.held))
    return (lambda: with_directions(recipe, split.train(rows()))), dev_rows, [split.note]


def _read_stream(
    recipe: Recipe, rows: _Reader, *, dev: _Reader | None, fields: Fields | None, cache: Path | None, notes: list[str]
) -> Corpus:
    def lines() -> Iterator[str]:
        return (row[OUTPUT] for row in rows())

    train_lines: Callable[[], Iterable[str]] = lines
    if dev is not None:
        dev_lines, cut = _beginning((row[OUTPUT] for row in dev()), DEV_CHARACTERS)
    else:
        tail = hold_out_tail(lines, share=recipe.data.dev_share)
        dev_lines, cut = _beginning(tail.dev(lines()), DEV_CHARACTERS)
        notes.append(tail.note)

        def train_lines() -> Iterable[str]:
            return tail.train(lines())

    if fields is None:
        fields = Fields.build(recipe, lambda: ({OUTPUT: line} for line in train_lines()))
    if cut:
        notes.append(f"dev: its first {DEV_CHARACTERS:,} characters are read for each report")
    recorder = Recorder.of(recipe)
    lines_read = recorder.add_lines(train_lines())
    stream = Stream.build(fields.text_output, lines_read, path=None if cache is None else cache / OUTPUT)
    wanted = recipe.evaluation.baseline != "none"
    baselines: list[Baseline] = [Unigram(_counts(fields, stream.ids))] if wanted else []
    dev_rows: list[Mapping[str, str]] = [{OUTPUT: line} for line in dev_lines]
    trained = recorder.finish()
    notes += [*rows.table.notes, *(dev.table.notes if dev else [])]
    if dev is not None:
        notes += _known_dev(recipe, trained, dev_rows)
    return Corpus(recipe, fields, stream, dev_rows, baselines, trained, notes)


def _beginning(lines: Iterable[str], left: int) -> tuple[list[str], bool]:
    """(lines of at most so many characters, newlines counted; whether there were more)."""
    kept: list[str] = []
    for line in lines:
        if left <= 0:
            return kept, True
        kept.append(line[:left])
        if len(line) > left:
            return kept, True
        left -= len(line) + 1
    return kept, False


def _baselines(recipe: Recipe, train: Dataset, rows: Rows, outputs: Counter[str]) -> list[Baseline]:
    """The baseline that the recipe names, or the default of the task, the unigram model for perplexity, and those that
    the recipe names further. Where no rows are to be kept as examples, none that keeps rows.

    outputs: the counts of labels in the training rows.
    """
    name = baseline_of(recipe)
    names = [one for one in (name, *recipe.evaluation.further_baselines) if one not in ("none", "unigram")]
    kinds = [BASELINES[one] for one in names if recipe.training.samples or not BASELINES[one].keeps_rows]
    training_rows = _training_rows(recipe, train.fields, rows, outputs)
    baselines: list[Baseline] = [kind.fit_rows(training_rows) for kind in kinds]
    if not recipe.output.one_step and name != "none":
        counts = _counts(train.fields, train.stores[OUTPUT].flat)
        baselines.append(Unigram.from_counts(counts, sequences=len(train)))
    return baselines


def _training_rows(recipe: Recipe, fields: Fields, rows: Rows, outputs: Counter[str]) -> TrainingRows:
    """The training rows in the forms that baselines are fitted to."""

    def pairs() -> Iterator[tuple[str, str]]:
        name = next(iter(recipe.texts))
        return ((row[name], row[OUTPUT]) for row in rows())

    return TrainingRows(
        pairs=pairs,
        joined_pairs=lambda: ((recipe.joined_texts(row), row[OUTPUT]) for row in rows()),
        outputs=lambda: outputs.elements() if outputs else (row[OUTPUT] for row in rows()),
        numbers=lambda: (fields.numeric_output.numbers(row[OUTPUT]) for row in rows()),
    )


def _counts(fields: Fields, ids: NDArray[np.int32]) -> dict[str, int]:
    """The counts of symbols in the outputs, with `<unk>` for symbols outside the vocabulary.

    The vocabulary's own counts have no `<unk>`, and those of a shared vocabulary include the inputs.
    """
    symbols = fields.output.vocabulary.symbols
    counts = np.zeros(len(symbols), dtype=np.int64)
    for block in in_pieces(ids, COUNTED_AT_ONCE):
        counts += np.bincount(np.where(block < len(symbols), block, UNK), minlength=len(symbols))
    return {symbol: int(counts[i]) for i, symbol in enumerate(symbols) if i not in (PAD, SOS)}
