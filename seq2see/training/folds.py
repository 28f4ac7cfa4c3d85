"""The folds of a table on disk, and models measured on the groups that they left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.data.columns import OUTPUT
from seq2see.data.folds import DevFrom, Fold, folds_by_group, folds_by_row
from seq2see.data.formats import Row
from seq2see.data.records import Data, as_lines, records_of
from seq2see.data.tables import Table
from seq2see.errors import UserError, counted, listing, nearest
from seq2see.evaluation.metrics import Measured, join_rows, measure
from seq2see.evaluation.ranking import GroupOutcome
from seq2see.files import write_bytes
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import with_directions
from seq2see.pipeline.evaluator import evaluate_model, report_metrics
from seq2see.pipeline.frozen_features import use_features
from seq2see.pipeline.trained_rows import training_overlap
from seq2see.recipe import Recipe
from seq2see.training.checkpoints import Sources, write_tables
from seq2see.training.dataset import filled, held_table, open_table

FOLDS = "folds"
"""The folder of the folds' tables."""
LEFT_OUT = "left-out.jsonl"
"""In a run's folder: what its model wrote for the rows that it left out, beside their references."""


@dataclass(frozen=True)
class FoldTables:
    """A fold as tables: `sources` to train on and to select by, `test` with the rows that are left out.

    group_of: the group of each row of `test`, in its order; rows: of train and dev.
    """

    name: str
    sources: Sources
    test: Path
    group_of: tuple[str, ...]
    rows: tuple[int, int]

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.group_of))


@dataclass(frozen=True)
class Folds:
    """All folds of a table; by: the column of their groups, empty for folds of rows; notes: on the table and on how it
    was dealt.

    The tables are to be written first: lines: every row as JSON, once; tables: the rows of each table, by their numbers
    in `lines`; encoding: by which the recipe reads tables.
    """

    by: str
    parts: tuple[FoldTables, ...]
    lines: Sequence[str]
    tables: Mapping[Path, Sequence[int]]
    encoding: str
    notes: tuple[str, ...]

    def content(self, *tables: Path) -> bytes:
        """The rows of tables, as one table."""
        return "".join(self.lines[row] for table in tables for row in self.tables[table]).encode(self.encoding)

    def write(self) -> None:
        """Write all tables, one at a time: together they are many times as large as the rows."""
        for table in self.tables:
            write_tables({table: self.content(table)})


def read_folds(
    recipe: Recipe,
    data: Data,
    columns: Sequence[str] | None,
    *,
    by: str | None,
    folds: int | None = None,
    dev_from: DevFrom | None = None,
    folder: Path,
) -> Folds:
    """Deal the rows of a table into folds, as tables in `folder`, with absolute paths of files.

    by: the column whose values are left out in turn; None: K folds over rows. Rows that cannot be used are named with
    their lines in the table, once.
    """
    check_untaught(recipe)
    if recipe.data.stream:
        raise UserError("data.stream: a contiguous text has no rows to leave out; set data.stream=false")
    if isinstance(data, str | Path):
        table, resolution = open_table(recipe, data, columns)
    else:
        table, resolution = held_table(recipe, data, columns)
    if by is not None and by not in table.columns:
        raise UserError(
            f"--by {by}: no column '{by}'{nearest(by, table.columns)} in {table.path}; it has: {listing(table.columns)}"
        )
    if by is not None and by == resolution.mapping.get(OUTPUT) and recipe.output.classes:
        others = [column for column in table.columns if column != by]
        raise UserError(
            f"--by {by}: '{by}' is the output, and no model gives a label that it was not trained on; allowed: a "
            f"column of speakers, books or writers ({table.path} has: {listing(others)}), or no --by for folds of rows"
        )
    raw: dict[int, Row] = {}

    def read() -> Any:
        for row in table:
            raw[row.line] = row
            yield row

    rows = list(resolution.part(table, read(), filled=filled(recipe)))
    resolution.check(table, len(rows))
    files = [resolution.mapping[name] for name in resolution.files if name in resolution.mapping]
    records = records_of([_record(table, raw[row.line], files) for row in rows])
    options: dict[str, Any] = {
        "names": list(recipe.inputs) or [OUTPUT],
        "folds": folds,
        "share": recipe.data.dev_share,
        "most": recipe.data.dev_most,
    }
    if by is None:
        if dev_from is not None:
            raise UserError(f"dev from {dev_from}: without a column of groups (--by), dev rows are set aside")
        dealt = folds_by_row(rows, **options)
    else:
        groups = [_group(table, raw[row.line], by) for row in rows]
        dealt = folds_by_group(rows, groups, column=by, dev_from=dev_from, **options)
    notes = [*([resolution.note] if resolution.note else []), *table.notes, _describe(dealt, by)]
    return _tables(dealt, records, columns, by=by or "", folder=folder, encoding=recipe.data.encoding, notes=notes)


def check_untaught(*recipes: Recipe) -> None:
    """Refuse teachers: what they learned from rows that are left out would reach the model."""
    teachers = [teacher for recipe in recipes for teacher in recipe.loss.distillation.teachers]
    if teachers:
        raise UserError(
            f"loss.distillation.teachers: {', '.join(teachers)} may have been trained on what is held out here, and "
            "would pass it on; allowed: none"
        )


def _record(table: Table, row: Row, files: Sequence[str]) -> dict[str, Any]:
    paths = {name: row.values.get(name) for name in files}
    found = {name: str((table.folder / path).absolute()) for name, path in paths.items() if isinstance(path, str)}
    return {**row.values, **{name: path for name, path in found.items() if str(paths[name]).strip()}}


def _group(table: Table, row: Row, column: str) -> str:
    value = row.values[column]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise UserError(
            f"{table.place(row.line)}, column '{column}': {value!r} names no group; every row needs a text or a number"
        )
    return str(value).strip()


def _describe(folds: Sequence[Fold], by: str | None) -> str:
    """How the rows were dealt, in one line."""
    tested = [len(fold.test) for fold in folds]
    rows = f"{min(tested):,}" if len(set(tested)) == 1 else f"{min(tested):,} to {max(tested):,}"
    groups = sum(len(fold.groups) for fold in folds)
    what = "" if by is None else f" of {groups:,} values of '{by}'"
    aside = folds[0].dev == folds[1].test  # what the next fold tests
    dev = f"another value of '{by}'" if by is not None and aside else "rows set aside from those trained on"
    return f"{counted(len(folds), 'fold')}{what}, {rows} rows tested in each; dev: {dev}"


def _tables(
    folds: Sequence[Fold],
    records: Sequence[dict[str, Any]],
    columns: Sequence[str] | None,
    *,
    by: str,
    folder: Path,
    encoding: str,
    notes: Sequence[str],
) -> Folds:
    """The folds as tables in a folder that is named by their content, so that other rows do not replace them. encoding:
    by which the recipe reads tables."""
    lines = as_lines(records, ascii_only=True).decode().splitlines(keepends=True)
    digest = hashlib.sha256("".join([encoding, "\n", *lines]).encode())
    for fold in folds:
        digest.update(json.dumps([fold.groups, fold.train, fold.dev]).encode())
    home = folder.resolve() / FOLDS / digest.hexdigest()[:12]
    parts, tables = [], dict[Path, Sequence[int]]()
    for number, fold in enumerate(folds, start=1):
        train, dev, test = (home / f"{number:02d}" / f"{name}.jsonl" for name in ("train", "dev", "test"))
        tested = [row for rows in fold.groups.values() for row in rows]
        tables |= {train: fold.train, dev: fold.dev, test: tested}
        sources = Sources(str(train), str(dev), list(columns) if columns else None)
        group_of = tuple(group for group, rows in fold.groups.items() for _ in rows)
        parts.append(FoldTables(fold.name, sources, test, group_of, (len(fold.train), len(fold.dev))))
    return Folds(by, tuple(parts), lines, tables, encoding, tuple(notes))


# ---------------------------------------------------------------- measuring what was left out


def measure_fold(bundle: Bundle, fold: FoldTables, *, folder: Path) -> tuple[dict[str, float], dict[str, GroupOutcome]]:
    """(the metrics of all rows of a fold, those of each of its groups), by the recipe's search and metrics.

    Predictions and references are written into `LEFT_OUT` in the run's folder.
    """
    recipe, names = bundle.recipe, report_metrics(bundle.recipe)[0]
    table, resolution = open_table(recipe, fold.test, fold.sources.columns, fields=bundle.fields)
    by_group: dict[str, list[Any]] = {group: [] for group in fold.groups}
    for row in resolution.rows(table, filled=filled(recipe)):
        by_group[fold.group_of[row.line - 1]].append(row)
    empty = next((group for group, rows in by_group.items() if not rows), None)
    if empty is not None:
        raise UserError(f"no row of the left-out '{empty}' can be read by the model; {'; '.join(table.notes)}")
    groups: dict[str, GroupOutcome] = {}
    measured: dict[str, list[Measured]] = {}
    every = [row for rows in by_group.values() for row in with_directions(recipe, rows)]
    with use_features([bundle], every, None):
        for group, rows in by_group.items():
            directed = list(with_directions(recipe, rows))
            evaluation = evaluate_model([bundle], directed, metrics=names)
            report = evaluation.report
            seen = training_overlap([(recipe, bundle.trained)], directed)
            trained = 0 if seen is None else seen.trained_on + seen.other_output
            groups[group] = GroupOutcome(len(directed), report.metrics, report.baseline, trained)
            measured[group] = evaluation.measured
    write_left_out(folder / LEFT_OUT, measured)
    return measure_together(list(measured.values())), groups


def measure_together(parts: Sequence[Sequence[Measured]]) -> dict[str, float]:
    """The metrics of several evaluations over the rows of all of them."""
    joined: dict[tuple[str, ...], list[Measured]] = {}
    for part in parts:
        for measured in part:
            joined.setdefault(tuple(measured.names), []).append(measured)
    pooled: dict[str, float] = {}
    for names, several in joined.items():
        pooled |= measure(names, join_rows([measured.rows for measured in several]))
    return pooled


def write_left_out(path: Path, groups: dict[str, list[Measured]]) -> None:
    """Write what metrics read of each left-out row, one JSON object on a line."""
    lines = [
        json.dumps({"group": group, **record}, ensure_ascii=False)
        for group, parts in groups.items()
        for part in parts
        for record in part.records()
    ]
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))


def read_left_out(path: Path) -> dict[str, list[Measured]]:
    """What `write_left_out` wrote, by group."""
    records: dict[str, dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    try:
        for line in path.read_bytes().splitlines():
            record = json.loads(line)
            records.setdefault(record["group"], {}).setdefault(tuple(record["metrics"]), []).append(record)
        return {
            group: [Measured.from_records(several) for several in parts.values()] for group, parts in records.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: missing or damaged: {error}; remove the run's folder to train it again") from None
