"""Whether variants can be compared at all: measured alike, on the same rows, and no two of them the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seq2see.errors import UserError
from seq2see.pipeline.bundle import RECIPE, WEIGHTS
from seq2see.recipe import Recipe
from seq2see.recipe.variants import Variant
from seq2see.training.run import SOURCES

MEASURED = re.compile(
    r"(data|evaluation)\..*|training\.dev_rows|loss\.alignment\.column"
    r"|inputs\.[^.]+\.column|output\.(kind|column|made|case|punctuation|unicode)"
)
"""Keys that decide which rows are measured, against which outputs and by what."""

IDLE = (
    "task",
    "description",
    "training.samples",
    "training.tensorboard",
    "training.checkpoint_every",
    "training.checkpoint_seconds",
)
"""Keys that change nothing about the model that comes of a run."""


def check_comparable(made: Mapping[Variant, Recipe]) -> None:
    """Refuse variants whose numbers could not stand beside each other, and those that are one and the same."""
    settings = {variant: dict(_flat(recipe.to_dict())) for variant, recipe in made.items()}
    for key in next(iter(made)).keys:
        changed = [path for path in _differing(list(settings.values())) if f"{path}.".startswith(f"{key}.")]
        measured = [path for path in changed if MEASURED.fullmatch(path)]
        if measured:
            raise UserError(
                f"--vary {key}: variants would be measured on other rows, or by other measures, and could not be "
                f"compared; give {measured[0]} one value, with --set"
            )
        if changed and all(path in IDLE for path in changed):
            raise UserError(f"--vary {key}: has no effect on what is learned, so that all variants would be the same")
    _check_doubles(settings)


def check_folder(folder: Path) -> None:
    """A comparison's files are not strewn over a model's."""
    if folder.is_file():
        raise UserError(f"--out {folder}: a file; a comparison needs a folder")
    if any((folder / name).exists() for name in (WEIGHTS, RECIPE, SOURCES)):
        raise UserError(f"{folder} holds a run already, and nothing was changed; --out takes another folder")


def _check_doubles(settings: Mapping[Variant, Mapping[str, Any]]) -> None:
    seen: dict[str, Variant] = {}
    for variant, its in settings.items():
        learned = {path: value for path, value in its.items() if path not in IDLE}
        first = seen.setdefault(json.dumps(learned, sort_keys=True), variant)
        if first is not variant:
            raise UserError(f"--vary: '{first}' and '{variant}' are the same recipe; leave one of them out")


def _differing(settings: list[dict[str, Any]]) -> list[str]:
    paths = dict.fromkeys(path for its in settings for path in its)
    return [path for path in paths if any(its.get(path) != settings[0].get(path) for its in settings)]


def _flat(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every key, through all groups of keys."""
    for key, value in settings.items():
        inside = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from _flat(value, inside)
        else:
            yield inside, value
