"""Shards: tables that belong together, named by a pattern or their folder, and shared out over processes."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from seq2see.data.excel import split_sheet
from seq2see.data.formats import formats
from seq2see.data.sources import PACKED, check_exists
from seq2see.errors import UserError

MARKS = ("state.json", "dataset_dict.json")
"""Files in the folder of a Hugging Face dataset."""


def names_several(path: str | Path) -> bool:
    """Whether a path stands for any number of tables: a pattern, or a folder that is no Hugging Face dataset."""
    path = Path(path)
    if path.is_dir():
        return not any((path / mark).exists() for mark in MARKS)
    return glob.has_magic(str(path)) and not path.exists()


def shards_of(path: str | Path) -> list[Path]:
    """The tables that a pattern ('in/*.tsv.gz'), a folder or the path of one table stands for, in order of their names.

    A folder's tables are the files whose suffix is that of a table; files whose names begin with a dot are left out.
    """
    path = Path(path)
    if not names_several(path):
        check_exists(split_sheet(path)[0])
        return [path]
    if path.is_dir():
        paths = [file for file in path.iterdir() if is_table(file.name)]
        suffixes = ", ".join(f".{kind}" for kind in formats if kind != "folder")
        empty = "" if any(path.iterdir()) else ", which is empty"
        wanted = f"no table in this folder{empty}; a table ends in {suffixes}, or these and .gz or .zst"
    else:
        paths = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - a path may be absolute
        wanted = "no file has a name like that"
    files = sorted((file for file in paths if file.is_file()), key=lambda file: (file.name, str(file)))
    if not files:
        raise UserError(f"{path}: {wanted}")
    return files


def is_table(name: str) -> bool:
    """Whether a file of that name is a table."""
    plain = name.lower()
    for suffix in PACKED:
        plain = plain.removesuffix(suffix)
    parts = plain.split(".")
    return not name.startswith(".") and len(parts) > 1 and parts[-1] in formats and parts[-1] != "folder"


def share_out(shards: Sequence[Path], processes: int) -> list[list[Path]]:
    """The shards of each process, in order of their names.

    The largest shard goes first, each to the process that has the fewest bytes so far. It depends on sizes and names
    alone, so that processes agree about it without talking, whenever they start and wherever the folder is mounted.
    """
    sizes = {shard: shard.stat().st_size for shard in shards}
    shares: list[list[Path]] = [[] for _ in range(processes)]
    loads = [0] * processes
    for shard in sorted(shards, key=lambda shard: (-sizes[shard], shard.name)):
        least = loads.index(min(loads))
        shares[least].append(shard)
        loads[least] += max(sizes[shard], 1)
    return [sorted(share, key=lambda shard: shard.name) for share in shares]
