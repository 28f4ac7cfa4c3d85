"""Inputs to begin with: rows that a model's folder keeps of the table it was measured on while it learned.

A folder may come from elsewhere, and what it says of this machine is not to be believed: under its name nothing is read
but what lies in the folder itself, among the data sets (SEQ2SEE_DATA), or in folders that the user gives (`--files`),
and of that only what the model itself can read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from seq2see.api import Model
from seq2see.data.columns import OUTPUT
from seq2see.data.locate import shared
from seq2see.data.media import MediaField
from seq2see.data.vector import VectorField
from seq2see.errors import UserError
from seq2see.training.corpus import open_table
from seq2see.training.kept_rows import EXAMPLES, MOST
from seq2see.training.reports import METRICS
from seq2see.training.run import SOURCES

LOOKED_AT = 200
Row = dict[str, str]


@dataclass
class Examples:
    """rows: with distinct inputs by the recipe's names, the output with them; outside: files that were named and not
    looked at, for they lie where nobody has said that they may be shown."""

    rows: list[Row] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)


def examples_of(model: Model, folder: Path, files: Sequence[Path] = ()) -> Examples:
    """None where nothing is left of the data. files: folders whose files may be shown."""
    found = Examples()
    if not model.recipe.inputs:
        return found
    roots = [one.resolve() for one in (folder, shared(), *files)]
    for source in (_kept, _from_table, _from_samples):
        try:
            rows = source(model, folder, roots)
        except (UserError, OSError, ValueError, LookupError, AttributeError, TypeError):
            continue  # a model without the data it was trained on is whole
        shown = [row for row in rows if _shown(model, row, roots, found)]
        if shown:
            return Examples(shown[:MOST])
    return found


def _kept(model: Model, folder: Path, roots: list[Path]) -> list[Row]:
    lines = (folder / EXAMPLES).read_text("utf-8").splitlines()
    return [_row(model, json.loads(line)) for line in lines[:LOOKED_AT]]


def _from_table(model: Model, folder: Path, roots: list[Path]) -> list[Row]:
    """Runs of earlier versions keep no rows, and name their tables."""
    sources = json.loads((folder / SOURCES).read_text("utf-8"))
    path = Path(sources.get("dev") or sources["data"])
    if not _inside(path, roots) or not path.exists():
        return []
    table, resolution = open_table(model.recipe, path, sources.get("columns"), fields=model.bundle.fields)
    resolution = replace(resolution, files=dict.fromkeys(resolution.files, _unread))
    found: dict[tuple[str, ...], Row] = {}
    for row in islice(resolution.rows(table), LOOKED_AT):
        inputs = tuple(row[name] for name in model.recipe.inputs)
        if all(value.strip() for value in inputs):
            found.setdefault(inputs, _row(model, row))
        if len(found) == MOST:
            break
    return list(found.values())


def _from_samples(model: Model, folder: Path, roots: list[Path]) -> list[Row]:
    """What the last report showed; several inputs are joined there, so that one alone can be told."""
    (name,) = model.recipe.inputs
    last = json.loads((folder / METRICS).read_text("utf-8").splitlines()[-1])
    return [{name: str(one["input"]), OUTPUT: str(one["reference"])} for one in last.get("samples", [])]


def _unread(_path: str) -> None:
    """No reason against a file of which it is not known yet whether it may be looked into."""


def _row(model: Model, told: Mapping[str, Any]) -> Row:
    row = {name: told[name] for name in (*model.recipe.inputs, OUTPUT)}
    if not all(isinstance(value, str) for value in row.values()):
        raise ValueError("texts expected")
    return row


def _shown(model: Model, row: Row, roots: list[Path], found: Examples) -> bool:
    """Whether the files of a row may be shown, and all of it is what the model reads."""
    fields = model.bundle.fields.inputs
    paths = [Path(one.file(row[name])) for name, one in fields.items() if isinstance(one, MediaField)]
    outside = [path for path in paths if not _inside(path, roots)]
    found.outside += outside
    checked = {name: one for name, one in fields.items() if isinstance(one, MediaField | VectorField)}
    return not outside and all(one.problem(row[name]) is None for name, one in checked.items())


def _inside(path: Path, roots: list[Path]) -> bool:
    """Links are followed first: one in a folder may lead out of it."""
    return any(path.resolve().is_relative_to(root) for root in roots)
