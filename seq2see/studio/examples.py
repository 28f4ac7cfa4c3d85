"""Inputs to begin with: rows of the table that a model was measured on while it learned, where they are still there.

A model's folder may come from elsewhere, and what it says of files is not to be believed: only what the model itself
can read is an example, and nothing else of this machine can be had under its name. (Tables are read with that check.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from seq2see.api import Model
from seq2see.data.columns import OUTPUT
from seq2see.data.media import MediaField
from seq2see.errors import UserError
from seq2see.training.corpus import open_table
from seq2see.training.reports import METRICS

MOST, LOOKED_AT = 12, 200
Row = dict[str, str]


def examples_of(model: Model, folder: Path) -> list[Row]:
    """Rows with distinct inputs by the recipe's names, the output with them; none where nothing is left of the data."""
    if not model.recipe.inputs:
        return []
    try:
        return _from_table(model, folder) or _from_samples(model, folder)
    except (UserError, OSError, ValueError, LookupError, AttributeError, TypeError):
        return []  # a model without the data it was trained on is whole


def _from_table(model: Model, folder: Path) -> list[Row]:
    sources = json.loads((folder / "data.json").read_text("utf-8")) if (folder / "data.json").is_file() else {}
    path = sources.get("dev") or sources.get("data")
    if not path or not Path(path).exists():
        return []
    table, resolution = open_table(model.recipe, path, sources.get("columns"), fields=model.bundle.fields)
    names = [*model.recipe.inputs, OUTPUT]
    found: dict[tuple[str, ...], Row] = {}
    for row in islice(resolution.rows(table), LOOKED_AT):
        inputs = tuple(row[name] for name in model.recipe.inputs)
        if all(value.strip() for value in inputs):
            found.setdefault(inputs, {name: row[name] for name in names})
        if len(found) == MOST:
            break
    return list(found.values())


def _from_samples(model: Model, folder: Path) -> list[Row]:
    """What the last report showed; several inputs are joined there, so that one alone can be told."""
    names = list(model.recipe.inputs)
    if len(names) > 1 or not (folder / METRICS).is_file():
        return []
    last = json.loads((folder / METRICS).read_text("utf-8").splitlines()[-1])
    samples = [{names[0]: str(one["input"]), OUTPUT: str(one["reference"])} for one in last.get("samples", [])]
    return [row for row in samples[:MOST] if _readable(model, row)]


def _readable(model: Model, row: Mapping[str, str]) -> bool:
    """Whether the files of a row are there, and what the model reads."""
    files = {name: field for name, field in model.bundle.fields.inputs.items() if isinstance(field, MediaField)}
    return all(field.problem(row[name]) is None for name, field in files.items())
