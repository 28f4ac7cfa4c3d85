"""Rows to begin with, kept in a model's folder: what may be asked of it by those who do not have its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from seq2see.data.columns import OUTPUT
from seq2see.data.output import write_bytes
from seq2see.data.turning import BACKWARDS
from seq2see.recipe import Recipe
from seq2see.recipe.media_settings import MediaSettings

EXAMPLES = "examples.jsonl"
MOST = 12


def keep_rows(folder: Path, recipe: Recipe, dev: Iterable[Mapping[str, str]]) -> None:
    """Write some dev rows of different inputs; of files the paths alone. None where no samples are to be told
    (`training.samples`), and none of a language model, which is asked nothing. Bytes of a path that are no UTF-8 are
    written as JSON escapes them, so that the file is UTF-8 whatever it names."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    if recipe.inputs and recipe.training.samples:
        for row in dev:
            inputs = {name: row[name] for name in recipe.inputs}
            if all(value.strip() and not value.endswith(BACKWARDS) for value in inputs.values()):
                found.setdefault(tuple(inputs.values()), _whole(recipe, {**inputs, OUTPUT: row[OUTPUT]}))
            if len(found) == MOST:
                break
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in found.values()]
    write_bytes(folder / EXAMPLES, "".join(lines).encode("utf-8", "backslashreplace"))


def _whole(recipe: Recipe, row: dict[str, str]) -> dict[str, str]:
    """The same row with paths that do not depend on where the run was begun."""
    files = [name for name, given in recipe.inputs.items() if isinstance(given, MediaSettings)]
    return {name: str(Path(value).absolute()) if name in files else value for name, value in row.items()}
