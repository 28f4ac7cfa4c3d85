"""Inputs to begin with: rows that a model's folder keeps of the table it was measured on while it learned.

A folder may come from elsewhere, and what it says of this machine is not to be believed: under its name nothing is read
but what lies in the folder itself, in the folder of data sets where SEQ2SEE_DATA names it, or in folders that the user
gives (`--files`), and of that only what the model itself can read.
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
from seq2see.data.locate import named
from seq2see.errors import UserError
from seq2see.modalities.files import MediaField
from seq2see.modalities.vector import VectorField
from seq2see.training.dataset import open_table
from seq2see.training.reports import EXAMPLES, METRICS, MOST, parted
from seq2see.training.run import SOURCES

LOOKED_AT = 200
Row = dict[str, str]


@dataclass
class Examples:
    """rows: with distinct inputs by the recipe's names, the output with them; outside, where there are none: files and
    tables that were named and not looked at, for they lie where nobody has said that they may be shown."""

    rows: list[Row] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)


def examples_of(model: Model, folder: Path, files: Sequence[Path] = ()) -> Examples:
    """None where nothing is left of the data. files: folders whose files may be shown."""
    if not model.recipe.inputs:
        return Examples()
    given = [folder, *files, *filter(None, [named()])]
    looking = _Looking(model, folder, [one.resolve() for one in given])
    for source in (looking.kept, looking.from_table, looking.from_samples):
        try:
            rows = source()
        except (UserError, OSError, ValueError, LookupError, AttributeError, TypeError):
            continue  # a model without the data it was trained on is whole
        shown = [row for row in rows if looking.shown(row)]
        if shown:
            return Examples(shown[:MOST])
    return Examples(outside=looking.outside)


@dataclass
class _Looking:
    """Looks for the rows of one model; roots: where files may lie, all links followed."""

    model: Model
    folder: Path
    roots: list[Path]
    outside: list[Path] = field(default_factory=list)

    def kept(self) -> list[Row]:
        lines = (self.folder / EXAMPLES).read_bytes().splitlines()
        return [self._row(json.loads(line.decode("utf-8", "surrogateescape"))) for line in lines[:LOOKED_AT]]

    def from_table(self) -> list[Row]:
        """Runs of earlier versions keep no rows, and name their tables."""
        sources = json.loads((self.folder / SOURCES).read_bytes())
        path = Path(sources.get("dev") or sources["data"])
        if not self._inside(path):
            return []
        fields = self.model.bundle.fields
        table, resolution = open_table(self.model.recipe, path, sources.get("columns"), fields=fields)
        resolution = replace(resolution, files=dict.fromkeys(resolution.files, _unread))
        found: dict[tuple[str, ...], Row] = {}
        for row in islice(resolution.rows(table), LOOKED_AT):
            inputs = tuple(row[name] for name in self.model.recipe.inputs)
            if all(value.strip() for value in inputs):
                found.setdefault(inputs, self._row(row))
            if len(found) == MOST:
                break
        return list(found.values())

    def from_samples(self) -> list[Row]:
        """What the last report showed."""
        names = list(self.model.recipe.inputs)
        last = json.loads((self.folder / METRICS).read_bytes().splitlines()[-1])
        told = [(parted(str(one["input"]), len(names)), str(one["reference"])) for one in last.get("samples", [])]
        return [dict(zip(names, parts, strict=True)) | {OUTPUT: output} for parts, output in told if parts is not None]

    def shown(self, row: Row) -> bool:
        """Whether the files of a row may be shown, and all of it is what the model reads."""
        fields = self.model.bundle.fields.inputs
        paths = [Path(one.file(row[name])) for name, one in fields.items() if isinstance(one, MediaField)]
        checked = {name: one for name, one in fields.items() if isinstance(one, MediaField | VectorField)}
        inside = [self._inside(path) for path in paths]
        return all(inside) and all(one.problem(row[name]) is None for name, one in checked.items())

    def _row(self, told: Mapping[str, Any]) -> Row:
        row = {name: told[name] for name in (*self.model.recipe.inputs, OUTPUT)}
        if not all(isinstance(value, str) for value in row.values()):
            raise ValueError("texts expected")
        return row

    def _inside(self, path: Path) -> bool:
        """Links are followed first: one in a folder may lead out of it. What is there and lies outside is noted."""
        found = any(path.resolve().is_relative_to(root) for root in self.roots)
        if not found and path.exists():
            self.outside.append(path.absolute())
        return found


def _unread(_path: str) -> None:
    """No reason against a file of which it is not known yet whether it may be looked into."""
