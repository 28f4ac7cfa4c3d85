"""Tables by the suffix of their name, read row by row as often as needed and never as a whole."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.data import (  # noqa: F401  each registers its formats
    delimited,
    parquet,
)
from seq2see.data.formats import Format, Row, formats
from seq2see.data.sources import LONGEST_NAME, MOST_CELL, MOST_COLUMNS, RowError, check_encoding, check_exists
from seq2see.errors import UserError, counted, listing, nearest
from seq2see.settings.data import DataSettings

LISTED = 50
"""Rows that cannot be used and are told one by one."""
KEPT = 1_000
"""... and of which the reason is kept; the others are counted."""
SKIPPED = "skipped"
MOST_EXPANSION, MOST_UNPACKED = 200, 1 << 28
"""What is in a table may be so many times larger than its file, and so many characters in any case: texts compress to a
tenth, and a file that unpacks to a thousand times its size was made to."""


@dataclass
class Blanks:
    """Rows in which one column is empty: how many, and the line of the first."""

    rows: int
    first: int


class Table:
    """A table on disk. Iterating reads it anew.

    What is kept of the latest reading: `skipped`, why bad rows were dropped; `blanks`, rows left out by column;
    `unusable`, reasons by what cannot be used of a row (a file, numbers), which are told together.
    """

    def __init__(self, path: Path, settings: DataSettings, kind: Callable[..., Format]):
        self.path = path
        self.settings = settings
        self._forget()
        self._format = kind(path, settings, bad=self.bad)
        self.columns: list[str] = self._format.columns()
        if len(self.columns) > MOST_COLUMNS:
            raise UserError(
                f"{path}: {len(self.columns):,} columns ({listing(self.columns)}), at most {MOST_COLUMNS:,}"
            )
        for name in self.columns:
            if len(name) > LONGEST_NAME:
                raise UserError(f"{path}: a column's name of {len(name):,} characters, at most {LONGEST_NAME:,}")

    def _forget(self) -> None:
        self.skipped: list[str] = []
        self.blanks: dict[str, Blanks] = {}
        self.unusable: dict[str, list[str]] = {}
        self._dropped = Counter[str]()

    def bad(self, error: RowError) -> None:
        """Stop at a bad row, or note it, as the settings say."""
        if self.settings.on_error == "stop":
            raise error
        self._dropped[SKIPPED] += 1
        if len(self.skipped) < KEPT:
            self.skipped.append(str(error))

    @property
    def folder(self) -> Path:
        """Where the paths in it begin."""
        return self.path if self.path.is_dir() else self.path.parent

    def set_aside(self, what: str, reason: str) -> None:
        """Note a row of which something cannot be used."""
        self._dropped[what] += 1
        kept = self.unusable.setdefault(what, [])
        if len(kept) < KEPT:
            kept.append(reason)

    def judge(self) -> None:
        """All rows are read: stop if some cannot be used and the settings say so, with every one of them listed."""
        if self.unusable and self.settings.on_error == "stop":
            advice = (
                "mend them, or leave these rows out: --set data.on_error=skip in training, --on-error skip elsewhere"
            )
            raise UserError("\n".join([*map(self._listed, self.unusable), advice]))

    def _listed(self, what: str) -> str:
        reasons = self.unusable[what]
        listed = [f"  {reason}" for reason in reasons[:LISTED]]
        if self._dropped[what] > LISTED:
            listed.append(f"  and {self._dropped[what] - LISTED:,} more")
        rows = counted(self._dropped[what], "row")
        return "\n".join([f"{self.path.name}: {rows} with {what} that cannot be used:", *listed])

    def leave_out(self, column: str, line: int) -> None:
        """Count a row that was left out because this column is empty in it."""
        self.blanks.setdefault(column, Blanks(0, line)).rows += 1

    @property
    def notes(self) -> list[str]:
        """What to tell the user of the latest reading, once it is at its end."""
        found = list(self._format.notes)
        found += [
            f"{self.path.name}: {counted(blanks.rows, 'row')} with an empty '{column}' left out,"
            f" the first at {self._format.unit} {blanks.first}"
            for column, blanks in self.blanks.items()
        ]
        if self.skipped:
            found.append(f"{counted(self._dropped[SKIPPED], 'bad row')} skipped; the first: {self.skipped[0]}")
        return found + [f"left out: {self._listed(what)}" for what in self.unusable]

    @property
    def headed(self) -> bool:
        """Whether the first line was taken for the names of the columns."""
        return self._format.headed

    @property
    def named(self) -> bool:
        """Whether its columns have names of their own (the lines of a .txt have none)."""
        return self._format.named

    def place(self, line: int) -> str:
        """'pairs.tsv, line 12'"""
        return f"{self.path}, {self._format.unit} {line}"

    def _too_long(self, row: Row, sizes: Sequence[int]) -> str:
        longest = max(sizes)
        name = list(row.values)[sizes.index(longest)]
        return f"{self.place(row.line)}, column '{name}': {longest:,} characters, at most {MOST_CELL:,}"

    def __iter__(self) -> Iterator[Row]:
        self._forget()
        row, characters = None, 0
        most = math.inf if self._format.in_memory else max(MOST_UNPACKED, MOST_EXPANSION * _bytes(self.path))
        for row in self._format.rows():
            size = row.size
            if not 0 <= size <= MOST_CELL:
                sizes = [len(value) if type(value) is str else _characters(value) for value in row.values.values()]
                if max(sizes, default=0) > MOST_CELL:
                    self.bad(RowError(self._too_long(row, sizes)))
                    continue
                size = sum(sizes)
            characters += size
            if characters > most:
                raise UserError(
                    f"{self.place(row.line)}: {characters:,} characters up to here, in a file of {_bytes(self.path):,} "
                    f"bytes; at most {MOST_EXPANSION} times as many, beyond {MOST_UNPACKED:,}"
                )
            yield row
        if row is None:
            if self.skipped:
                raise UserError(
                    f"{self.path}: none of its {counted(self._dropped[SKIPPED], 'row')} can be read;"
                    f" the first: {self.skipped[0]}"
                )
            raise UserError(f"{self.path}: a header ({listing(self.columns)}) but no rows")


def _characters(value: Any) -> int:
    """How much room a value takes, lists with all that is in them."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):
        return 8 * len(value) + sum(map(_characters, value))
    return 8 + sum(map(_characters, value.values())) if isinstance(value, dict) else 8


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def read(path: str | Path, *, settings: DataSettings | None = None) -> Table:
    """Open a table; a missing, empty or unreadable one, and a first row that is wrong, are reported at once."""
    path = Path(path)
    settings = settings or DataSettings()
    check_exists(path)
    check_encoding(settings.encoding)
    table = Table(path, settings, formats["folder"] if path.is_dir() else kind_of(path))
    next(iter(table))
    return table


def write(path: str | Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write a table in the format its suffix names. The file appears whole or not at all."""
    path = Path(path)
    kind = kind_of(path)
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist")
    part = path.with_name(f".{path.name}.part")
    try:
        kind.write(part, rows, list(columns), packed=path.suffix == ".gz")
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def kind_of(path: Path) -> type[Format]:
    """The format a file's suffix names."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    name = suffix.lower().removeprefix(".")
    if name == "folder" or name not in formats:
        known = [f".{other}" for other in formats if other != "folder"]
        raise UserError(
            f"{path}: unknown suffix '{suffix}'{nearest(suffix, known)}; a table is one of {', '.join(known)},"
            " each also with .gz, or the folder of a Hugging Face dataset"
        )
    return formats[name]
