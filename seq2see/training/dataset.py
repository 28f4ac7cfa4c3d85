"""From tables to what a run needs: fields, encoded training rows, dev rows, and the trivial models beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import PAD, SOS, UNK
from seq2see.data.columns import ALIGNMENT, OUTPUT, Check, Joined, Resolution, has_column, resolve
from seq2see.data.records import Data, as_lines, records_of, table_of
from seq2see.data.split import hold_out, hold_out_tail
from seq2see.data.tables import Table, read
from seq2see.errors import UserError, counted, nearest
from seq2see.evaluation import BASELINES, Baseline, TrainingRows, Unigram, default_baseline
from seq2see.modalities.base import Field
from seq2see.modalities.label import FORWARD
from seq2see.pipeline.dataset import Dataset, Stream, with_directions
from seq2see.pipeline.fields import Fields, unbuilt_fields
from seq2see.pipeline.trained_rows import Recorder, TrainedRows, seen_by
from seq2see.recipe import Recipe
from seq2see.recipe.measures import AER, measures_of
from seq2see.settings.base import TextSettings

ON_DISK_FROM = 256 << 20
"""Tables of at least so many bytes are encoded into files and mapped, not held in memory."""

IN_MEMORY_TO = 16 << 20
"""Tables of at most so many bytes are read once, and their rows held in memory until they are encoded."""
MAX_EXPANSION = 4
"""... unless they are so many times as long once they are unpacked."""

DEV_CHARACTERS = 1 << 21
"""A stream is measured on a text of at most this length: reports come often, and hold it in memory."""

COUNTED_AT_ONCE = 1 << 22

Rows = Callable[[], Iterator[Mapping[str, str]]]


@dataclass
class Corpus:
    """recipe: with the columns that were found; train: encoded rows or a stream; dev: rows as they are read (a stream's
    lines); trained: the rows to train on, as hashes; notes: what to tell the user."""

    recipe: Recipe
    fields: Fields
    train: Dataset | Stream
    dev: list[Mapping[str, str]]
    baselines: list[Baseline]
    trained: TrainedRows
    notes: list[str] = field(default_factory=list)


def wanted_columns(recipe: Recipe) -> list[tuple[str, str]]:
    """(name in the recipe, column it names), inputs first, the output last, unless it is made of the inputs."""
    inputs = [(name, settings.column or name) for name, settings in recipe.inputs.items()]
    return inputs if recipe.made else [*inputs, (OUTPUT, recipe.output.column or OUTPUT)]


def with_columns(recipe: Recipe, table: Table, resolution: Resolution) -> Recipe:
    """The recipe with the columns that were found in a table, by which a model of it finds them in other tables.

    Columns that the table does not name itself (the lines of a .txt) are left as the recipe has them.
    """
    found = {
        name: resolution.mapping[name]
        for name, column in wanted_columns(recipe)
        if table.named and resolution.mapping.get(name, column) != column
    }
    inputs = {
        name: settings.model_copy(update={"column": found[name]}) if name in found else settings
        for name, settings in recipe.inputs.items()
    }
    output = recipe.output.model_copy(update={"column": found[OUTPUT]}) if OUTPUT in found else recipe.output
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
    """A table and which of its columns are which; links that the recipe learns from are taken where there are any.

    fields: those of a model, which know how many numbers make a row; numbers: checks of an earlier table, which do too.
    """
    table = path if isinstance(path, Table) else read(path, settings=recipe.data)
    links = recipe.loss.alignment.column
    others = [column for column in table.columns if column != links]
    found = resolve(others, wanted_columns(recipe), columns, path=table.path, optional=optional)
    if links is not None and links in table.columns:
        found = replace(found, mapping={**found.mapping, ALIGNMENT: links})
    if found.note and table.headed:  # names nobody asked for may be those of a row in a table without a header
        found = replace(found, note=f"{found.note}; the first line of {table.path.name} was read as their names")
    new = unbuilt_fields(recipe)
    numbers = checks_in(new if fields is None else fields.all) if numbers is None else numbers
    known = {OUTPUT: FORWARD} if recipe.made else {}
    return table, replace(found, lists=lists_in(new), files=files_in(new), numbers=numbers, known=known)


def held_table(
    recipe: Recipe,
    data: Data,
    columns: Sequence[str] | None,
    *,
    fields: Fields | None = None,
    optional: Sequence[str] = (),
) -> tuple[Table, Resolution]:
    """The same for rows in memory, whose keys are columns, or the recipe's own names."""
    table = table_of(data, settings=recipe.data)
    names = [name for name, _ in wanted_columns(recipe) if name not in optional or name in table.columns]
    if columns is None and all(name in table.columns for name in names):
        columns = names
    table, resolution = open_table(recipe, table, columns, optional=optional, fields=fields)
    if ALIGNMENT in table.columns:
        resolution = replace(resolution, mapping={**resolution.mapping, ALIGNMENT: ALIGNMENT})
    return table, resolution


def lines_of(recipe: Recipe, data: Data, columns: Sequence[str] | None, *, what: str) -> bytes:
    """Rows in memory as the content of a table to train on."""
    records = records_of(data, what=what)
    found = resolve(list(records[0]), wanted_columns(recipe), columns, path=what)
    return as_lines(
        records,
        files=[
            found.mapping[name]
            for name, one in unbuilt_fields(recipe).items()
            if one.settings.file and name in found.mapping
        ],
    )


def lists_in(fields: Mapping[str, Field]) -> dict[str, Joined]:
    """Columns that may be given as lists, with what makes one text of them."""
    return {name: field.from_list for name, field in fields.items() if field.elements is not None}


def checks_in(fields: Mapping[str, Field]) -> dict[str, Check]:
    """Columns of values that may be unusable, files apart, with what tells why: those of a model know how many numbers
    make a row, new ones learn it from the first row."""
    return {name: field.problem for name, field in fields.items() if field.unusable and not field.settings.file}


def files_in(fields: Mapping[str, Field]) -> dict[str, Check]:
    """Columns of files, with what tells why one cannot be used; each file is read once."""
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
    """Read, split and encode. `fields`: those of an earlier model (resuming, fine-tuning) instead of new ones."""
    table, resolution = open_table(recipe, data, columns, fields=fields)
    _check_aligned(recipe, table, resolution)
    written, recipe = recipe, with_columns(recipe, table, resolution)
    notes = [resolution.note] if resolution.note else []
    rows = _Reader(recipe, resolution, table)
    if resolution.numbers and dev is not None:  # the first row tells how many numbers make one, before --dev is read
        next(rows())
    dev_table, held_out = _dev_reader([recipe, written], dev, columns, resolution)
    kept = _cache(data, folder)
    if recipe.data.stream:
        return _read_stream(recipe, rows, dev=held_out, fields=fields, cache=kept, notes=notes)
    train_rows, dev_rows, said = _split(recipe, rows, held_out)
    notes += said
    fields = fields if fields is not None else Fields.build(recipe, train_rows)
    recorder, outputs = Recorder.of(recipe), Counter[str]()

    def used(row: Mapping[str, str]) -> None:
        recorder.add(row)
        if recipe.output.classes:
            outputs[row[OUTPUT]] += 1

    train = Dataset.build(fields, train_rows(), folder=kept, used=used)
    trained = recorder.finish()
    notes += [*_shortened(recipe, train), *table.notes, *(dev_table.notes if dev_table is not None else [])]
    if not len(train):
        raise UserError("; ".join([f"{data}: no rows are left to train on", *notes]))
    if held_out is not None:
        notes += _known_dev(recipe, trained, dev_rows)
    return Corpus(recipe, fields, train, dev_rows, _baselines(recipe, train, train_rows, outputs), trained, notes)


def _known_dev(recipe: Recipe, trained: TrainedRows, dev: Sequence[Mapping[str, str]]) -> list[str]:
    """What to say of rows of --dev that are trained on too, which set-aside rows never are."""
    seen = seen_by([(recipe, trained)], dev)
    what = "line" if recipe.data.stream else "row"
    return [] if seen is None else [f"dev: {line}" for line in seen.lines(what)]


def _check_aligned(recipe: Recipe, table: Table, resolution: Resolution) -> None:
    column = recipe.loss.alignment.column
    if column is not None and ALIGNMENT not in resolution.mapping:
        raise UserError(
            f"{table.path}: no column '{column}'{nearest(column, table.columns)}, which loss.alignment.column names; "
            f"the table has: {', '.join(table.columns)}"
        )


def _cache(data: str | Path, folder: Path | None) -> Path | None:
    """Where ids are kept that are too many for memory; None where they are not."""
    size = Path(data).stat().st_size if Path(data).is_file() else ON_DISK_FROM
    return folder / "cache" if folder is not None and size >= ON_DISK_FROM else None


class _Reader:
    """The rows of a table, read anew at each call; those of a small table are kept in memory when first read."""

    def __init__(self, recipe: Recipe, resolution: Resolution, table: Table):
        self._recipe, self._resolution, self._table = recipe, resolution, table
        self._rows: list[Mapping[str, str]] | None = None

    def __call__(self) -> Iterator[Mapping[str, str]]:
        return self._read() if self._rows is None else iter(self._rows)

    def _read(self) -> Iterator[Mapping[str, str]]:
        path = Path(self._table.path)
        small = path.is_file() and path.stat().st_size <= IN_MEMORY_TO
        rows, characters = list[Mapping[str, str]](), 0
        for row in self._resolution.rows(self._table, filled=filled(self._recipe)):
            characters += sum(map(len, row.values())) if small else 0
            small = small and characters <= MAX_EXPANSION * IN_MEMORY_TO
            if small:
                rows.append(row)
            yield row
        if small:
            self._rows = rows


def filled(recipe: Recipe) -> tuple[str, ...]:
    """Names whose values must not be empty: all that the recipe does not allow to be, but for the lines of a stream,
    whose ends are symbols of their own."""
    return () if recipe.data.stream else (*recipe.needed, OUTPUT)


def _dev_reader(
    recipes: Sequence[Recipe], dev: str | Path | None, columns: Sequence[str] | None, train: Resolution
) -> tuple[Table, Rows] | tuple[None, None]:
    """Its columns are those of the first recipe that names them: as in the training table, or as it was written."""
    if dev is None:
        return None, None
    header = read(dev, settings=recipes[0].data).columns
    fitting = (one for one in recipes if all(has_column(column, header) for _, column in wanted_columns(one)))
    recipe = next(fitting, recipes[0])
    table, resolution = open_table(recipe, dev, columns, numbers=train.numbers)
    if AER in measures_of(recipe):
        _check_aligned(recipe, table, resolution)
    return table, _Reader(recipe, resolution, table)


def _shortened(recipe: Recipe, train: Dataset) -> list[str]:
    """What `max_length` did to the rows."""
    said = []
    for name, cut in train.cut.items():
        limit = train.fields.text_inputs[name].limit
        said.append(f"{cut:,} of {len(train):,} inputs '{name}' were longer than {limit} and were cut")
    if train.left_out:
        most = recipe.output.max_length if isinstance(recipe.output, TextSettings) else 0
        said.append(f"{counted(train.left_out, 'row')} left out: the output is longer than output.max_length {most}")
    return said


def _split(recipe: Recipe, rows: Rows, dev: Rows | None) -> tuple[Rows, list[Mapping[str, str]], list[str]]:
    if dev is not None:
        return (lambda: with_directions(recipe, rows())), list(with_directions(recipe, dev())), []
    names = list(recipe.inputs) or [OUTPUT]
    split = hold_out(rows(), names=names, share=recipe.data.dev_share, most=recipe.data.dev_most)
    if not split.dev_rows:
        raise UserError(
            f"no row of {split.rows:,} could be set aside for dev: the inputs are all equal, or data.dev_share is 0; "
            "give --dev"
        )
    dev_rows = list(with_directions(recipe, split.dev(rows()) if split.held is None else split.held))
    return (lambda: with_directions(recipe, split.train(rows()))), dev_rows, [split.note]


def _read_stream(
    recipe: Recipe, rows: Rows, *, dev: Rows | None, fields: Fields | None, cache: Path | None, notes: list[str]
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
    named = recipe.evaluation.baseline != "none"
    baselines: list[Baseline] = [Unigram(_counts(fields, stream.ids))] if named else []
    dev_rows: list[Mapping[str, str]] = [{OUTPUT: line} for line in dev_lines]
    trained = recorder.finish()
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
    """The trivial model the recipe (or the kind of task) names, and the unigram model for perplexity.

    outputs: how often each stands in the training rows, where they are labels.
    """
    name = recipe.evaluation.baseline or default_baseline(
        recipe.output.measured_as, inputs=bool(recipe.inputs), text=bool(recipe.texts)
    )
    made: list[Baseline] = []
    if name not in ("none", "unigram"):
        made.append(BASELINES[name].fit_rows(_training_rows(recipe, train.fields, rows, outputs)))
    if not recipe.output.one_step and name != "none":
        counts = _counts(train.fields, train.stores[OUTPUT].flat)
        made.append(Unigram.from_counts(counts, sequences=len(train)))
    return made


def _training_rows(recipe: Recipe, fields: Fields, rows: Rows, outputs: Counter[str]) -> TrainingRows:
    """The training rows as baselines are fitted to them."""

    def pairs() -> Iterator[tuple[str, str]]:
        name = next(iter(recipe.texts))
        return ((row[name], row[OUTPUT]) for row in rows())

    return TrainingRows(
        pairs=pairs,
        outputs=lambda: outputs.elements() if outputs else (row[OUTPUT] for row in rows()),
        numbers=lambda: (fields.numeric_output.numbers(row[OUTPUT]) for row in rows()),
    )


def _counts(fields: Fields, ids: NDArray[np.int32]) -> dict[str, int]:
    """How often each symbol of the vocabulary stands in the outputs as they are predicted: others are `<unk>`.

    (A vocabulary's own counts know nothing of `<unk>`, and where it is shared they are also those of the inputs.)
    """
    symbols = fields.output.vocabulary.symbols
    counts = np.zeros(len(symbols), dtype=np.int64)
    for start in range(0, len(ids), COUNTED_AT_ONCE):
        some = np.asarray(ids[start : start + COUNTED_AT_ONCE])
        counts += np.bincount(np.where(some < len(symbols), some, UNK), minlength=len(symbols))
    return {symbol: int(counts[i]) for i, symbol in enumerate(symbols) if i not in (PAD, SOS)}
