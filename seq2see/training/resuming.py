"""Going on with a run: what may be said again, what may be changed, and what has to stay as it was begun."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2see.data.columns import pasted
from seq2see.errors import UserError
from seq2see.recipe import Recipe, load_recipe
from seq2see.training.fine_tuning import leaves
from seq2see.training.run import Sources

PARTS = ("inputs", "output", "data", "encoder", "attention", "decoder", "evaluation")
"""Parts that decide on weights, on rows and on which model is the best ..."""
FREE = ("dropout",)
"""... but for these keys, wherever they stand."""
TRAINING = ("optimizer", "batch_tokens", "batch_rows", "bptt", "lanes", "seed", "metric")
"""The keys of `training` that decide on batches and their order, or that what a checkpoint holds depends on."""


def same_sources(
    begun: Sources, *, data: str | Path | None, dev: str | Path | None, columns: Sequence[str] | None
) -> None:
    """Where rows come from may be said again, not otherwise; what is None was not said."""
    given = {
        "--data": (None if data is None else str(Path(data).resolve()), begun.data),
        "--dev": (None if dev is None else str(Path(dev).resolve()), begun.dev),
        "--columns": (pasted(columns) if columns else None, pasted(begun.columns) if begun.columns else None),
    }
    for option, (now, before) in given.items():
        if now is not None and now != before:
            raise UserError(_otherwise(option, before if before is not None else "none", now))


def same_rows(begun: Sources, tables: Mapping[Path, bytes]) -> None:
    """Rows that are held in memory may be given again if they are those that the run has written down."""
    for path, content in tables.items():
        known = path.read_bytes() if str(path) in (begun.data, begun.dev) and path.is_file() else None
        if content != known:
            raise UserError(_otherwise(path.stem, "other rows", "these"))


def gone_on(begun: Recipe, overrides: Sequence[str]) -> Recipe:
    """The recipe of a run with overrides, which may lengthen it or slow it down, but not make it another run."""
    if not overrides:
        return begun
    recipe = load_recipe(begun, overrides=overrides)
    before, now = dict(_fixed(begun.to_dict())), dict(_fixed(recipe.to_dict()))
    for key in dict.fromkeys([*before, *now]):
        if before.get(key) != now.get(key):
            raise UserError(_otherwise(key, before.get(key), now.get(key)))
    return recipe


def _otherwise(what: str, before: object, now: object) -> str:
    return (
        f"{what}: the run was begun with {before}, got {now}; --resume goes on with a run as it was begun, "
        "--out and another folder begin another"
    )


def _fixed(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for part in PARTS:
        yield from leaves(settings[part], part, free=FREE)
    for key in TRAINING:
        yield f"training.{key}", settings["training"][key]
