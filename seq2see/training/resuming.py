"""Resuming a run: where its rows come from, which checkpoint it continues, and which settings may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from seq2see.data.columns import as_option
from seq2see.data.records import Data, is_path
from seq2see.errors import UserError
from seq2see.files import MEBIBYTE, read_json, shortened, unwritable, write_bytes
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, saved_recipe
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.schema import flatten
from seq2see.training.checkpoints import CHECKPOINTS, checkpoint_paths
from seq2see.training.dataset import lines_of
from seq2see.training.reports import METRICS

SOURCES, TABLES = "data.json", "data"
"""The file that names the tables of a run, and the folder of the tables that were given in memory."""


@dataclass
class Sources:
    """The tables of a run, written into its folder so that --resume needs no further option.

    fine_tuned: the run started from another model's weights, which only its checkpoints still have.
    """

    data: str
    dev: str | None = None
    columns: list[str] | None = None
    fine_tuned: bool = False


def sources_of(
    recipe: Recipe, data: Data, dev: Data | None, columns: Sequence[str] | None, *, folder: Path
) -> tuple[Sources, dict[Path, bytes]]:
    """(the tables of a run, {path: content} of tables to write into its folder first: rows that were given in
    memory)."""
    if isinstance(columns, str):
        raise UserError(f"columns: expected a list of names, got the text '{columns}'")
    tables: dict[Path, bytes] = {}

    def path_of(rows: Data, what: str, name: str) -> str:
        if is_path(rows):
            return str(Path(rows).resolve())
        path = folder.resolve() / TABLES / name
        tables[path] = lines_of(recipe, rows, columns, what=what)
        return str(path)

    train_path = path_of(data, "data", "train.jsonl")
    dev_path = None if dev is None else path_of(dev, "dev", "dev.jsonl")
    return Sources(train_path, dev_path, list(columns) if columns else None), tables


def write_tables(tables: Mapping[Path, bytes]) -> None:
    """Write the tables of rows that were given in memory."""
    for path, content in tables.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path.parent, error) from None
        write_bytes(path, content)


def check_free(folder: Path) -> None:
    """Refuse a folder that holds a run; one that was killed before its first checkpoint has nothing to lose."""
    kept = [folder / WEIGHTS, *(folder / CHECKPOINTS).glob("*.safetensors")]
    if not (folder / SOURCES).exists():
        kept += [folder / RECIPE, folder / METRICS]
    if any(path.exists() for path in kept):
        raise UserError(
            f"{folder} holds a run already, and nothing was changed; --resume goes on with it, --out takes another "
            "folder, --overwrite starts anew"
        )


def resumable(folder: Path) -> tuple[Recipe, Sources]:
    """The recipe and the tables of the run in this folder."""
    if not (folder / SOURCES).is_file() or not (folder / RECIPE).is_file():
        raise UserError(f"{folder}: nothing to resume; a run's folder holds {RECIPE}, {SOURCES} and {CHECKPOINTS}/")
    return saved_recipe(folder), read_sources(folder / SOURCES)


def has_checkpoint(folder: Path, sources: Sources) -> bool:
    """Whether there is a checkpoint to resume from; a UserError where starting anew would lose something."""
    if checkpoint_paths(folder / CHECKPOINTS):
        return True
    missing = f"{folder}: nothing to resume, there is no checkpoint in {CHECKPOINTS}/"
    if (folder / WEIGHTS).exists():
        raise UserError(f"{missing}, but a model, which a new start would replace; start without --resume")
    if sources.fine_tuned:
        raise UserError(f"{missing}, and the run started from another model; start without --resume and with --from")
    return False


def read_sources(path: Path) -> Sources:
    """The tables of a run, as its folder names them."""
    stored = read_json(path, most=MEBIBYTE, what="where a run's rows come from")
    try:
        return TypeAdapter(Sources).validate_python(stored, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where, got = ".".join(map(str, first["loc"])), shortened(first["input"])
        raise UserError(
            f"{path}: damaged, it does not say where the rows come from: '{where}': {first['msg']}, got {got}"
        ) from None


# ---------------------------------------------------------------- settings of a resumed run

PARTS = ("inputs", "output", "data", "encoder", "attention", "decoder", "evaluation")
"""Parts that determine the weights, the rows and which model is the best ..."""
FREE = ("dropout",)
"""... except these keys, at any depth."""
TRAINING = ("optimizer", "batch_tokens", "batch_rows", "bptt", "lanes", "seed", "metric")
"""The keys of `training` that determine the batches, their order, or the content of a checkpoint."""


def check_sources(
    before: Sources, *, data: str | Path | None, dev: str | Path | None, columns: Sequence[str] | None
) -> None:
    """Refuse other tables or columns than those of the run; None stands for an option that was not given."""
    options = {
        "--data": (None if data is None else str(Path(data).resolve()), before.data),
        "--dev": (None if dev is None else str(Path(dev).resolve()), before.dev),
        "--columns": (as_option(columns) if columns else None, as_option(before.columns) if before.columns else None),
    }
    for option, (now, then) in options.items():
        if now is not None and now != then:
            raise UserError(_changed(option, then if then is not None else "none", now))


def check_rows(before: Sources, tables: Mapping[Path, bytes]) -> None:
    """Refuse rows given in memory that are not those that the run has written into its folder."""
    for path, content in tables.items():
        stored = path.read_bytes() if str(path) in (before.data, before.dev) and path.is_file() else None
        if content != stored:
            raise UserError(_changed(path.stem, "other rows", "these"))


def resumed_recipe(before: Recipe, overrides: Sequence[str]) -> Recipe:
    """The recipe of a run with overrides, which may change limits and learning rate but not make it another run."""
    if not overrides:
        return before
    recipe = load_recipe(before, overrides=overrides)
    then, now = dict(_fixed(before.to_dict())), dict(_fixed(recipe.to_dict()))
    for key in dict.fromkeys([*then, *now]):
        if then.get(key) != now.get(key):
            raise UserError(_changed(key, then.get(key), now.get(key)))
    return recipe


def _changed(what: str, then: object, now: object) -> str:
    return (
        f"{what}: the run was begun with {then}, got {now}; --resume goes on with a run as it was begun, "
        "--out and another folder begin another"
    )


def _fixed(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of the settings that may not change."""
    for part in PARTS:
        yield from flatten(settings[part], part, free=FREE)
    for key in TRAINING:
        yield f"training.{key}", settings["training"][key]
