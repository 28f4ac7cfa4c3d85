"""Tables by name: a path as it stands, or a data set of the shared folder that SEQ2SEE_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from seq2see.data import tables  # noqa: F401  knows the formats
from seq2see.data.formats import formats
from seq2see.errors import UserError, nearest

VARIABLE, USUAL = "SEQ2SEE_DATA", "../shared/data"
"""The folder of data sets is the one the variable names; without it, `shared/data` beside the working folder."""

MARKS = ("state.json", "dataset_dict.json")
"""What the folder of a Hugging Face dataset holds."""


def locate(name: str | Path) -> tuple[Path, Path | None]:
    """(table to train on, table for dev or None).

    `name` is a file, a folder with train.* and dev.*, or either of these inside the folder of data sets. A folder here
    without a table does not hide the data set of that name: people call their runs after the data. What is not found
    is given back as it is: whoever reads it says what is wrong.
    """
    for path in (Path(name), shared() / name):
        train = table_in(path, "train") if path.is_dir() else None
        if train is not None:
            return train, table_in(path, "dev")
        if path.is_file() or any((path / mark).exists() for mark in MARKS):
            return path, None
    if Path(name).exists():
        return Path(name), None
    known = data_sets()
    if len(Path(name).parts) == 1 and not Path(name).suffix and known:
        raise UserError(
            f"{name}: no such file, and no data set{nearest(str(name), known)}; those in {shared()}: {', '.join(known)}"
        )
    return Path(name), None


def shared() -> Path:
    """The folder of data sets."""
    return named() or Path(USUAL)


def named() -> Path | None:
    """The folder of data sets where the user has said which it is; the usual one is a guess, good enough to look for a
    name in it and not to let others see what it holds."""
    said = os.environ.get(VARIABLE)
    return Path(said) if said else None


def data_sets() -> list[str]:
    """Names of the folders there that hold a table to train on."""
    if not shared().is_dir():
        return []
    return sorted(path.name for path in shared().iterdir() if path.is_dir() and table_in(path, "train"))


def table_in(folder: Path, stem: str) -> Path | None:
    """The table of a folder whose name, without its suffixes, is `stem`."""
    known = {name for name in formats if name != "folder"}
    for path in sorted(folder.glob(f"{stem}.*")):
        parts = path.name.removeprefix(f"{stem}.").split(".")
        if parts[0] in known and parts[1:] in ([], ["gz"]):
            return path
    return None
