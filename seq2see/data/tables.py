"""Tables: files by suffix, read row by row and never as a whole; data sets by name."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seq2see.data import parquet  # noqa: F401  it registers its formats
from seq2see.data.delimited import Csv, Dialect
from seq2see.data.excel import split_sheet
from seq2see.data.formats import Block, DataSettings, Format, Layout, Row, formats
from seq2see.data.series_files import decimal_points
from seq2see.data.shards import MARKS, names_several, shards_of
from seq2see.data.sources import MAX_CELL, MAX_COLUMNS, MAX_NAME, PACKED, RowError, check_encoding, check_exists
from seq2see.errors import UserError, counted, listing, nearest
from seq2see.files import shortened

MAX_LISTED = 50
"""Unusable rows that are listed one by one."""
MAX_KEPT = 1_000
"""Unusable rows whose reason is kept; the others are counted."""
SKIPPED = "skipped"
MAX_EXPANSION, MAX_UNPACKED = 200, 1 << 28
"""Limits of what a compressed table may unpack to: relative to its file size, and in characters. Text compresses to
a tenth; a file that unpacks to a thousand times its size is an attack."""


@dataclass
class Blanks:
    """Rows in which one column is empty: their number, and the line of the first."""

    rows: int
    first: int


class Table:
    """A table on disk; every iteration reads it again.

    Of the latest reading it keeps `skipped`, why bad rows were dropped; `blanks`, rows with an empty cell by column;
    and `unusable`, reasons by kind (a file, numbers), which are reported together.
    """

    def __init__(self, path: Path, settings: DataSettings, kind: Callable[..., Format]):
        self.path = path
        self.settings = settings
        self._reset()
        self._format = kind(path, settings, bad=self.bad)
        self.columns: list[str] = self._format.columns()
        self._bytes = 0 if self._format.in_memory else sum(file.stat().st_size for file in self.files)
        self._limit = math.inf if self._format.in_memory else max(MAX_UNPACKED, MAX_EXPANSION * self._bytes)
        if len(self.columns) > MAX_COLUMNS:
            raise UserError(f"{path}: {len(self.columns):,} columns ({listing(self.columns)}), at most {MAX_COLUMNS:,}")
        for name in self.columns:
            if len(name) > MAX_NAME:
                raise UserError(f"{path}: a column's name of {len(name):,} characters, at most {MAX_NAME:,}")

    @property
    def dialect(self) -> Dialect | None:
        """How a .csv file is written; None of other formats."""
        return self._format.dialect if isinstance(self._format, Csv) else None

    def _reset(self) -> None:
        self.skipped: list[str] = []
        self.blanks: dict[str, Blanks] = {}
        self.unusable: dict[str, list[str]] = {}
        self._dropped = Counter[str]()
        self._decimal = ""
        self._rows = self._characters = 0

    def bad(self, error: RowError) -> None:
        """Raise the error of a bad row, or record it, as the settings say."""
        if self.settings.on_error == "stop":
            raise error
        self._dropped[SKIPPED] += 1
        if len(self.skipped) < MAX_KEPT:
            self.skipped.append(str(error))

    @property
    def files(self) -> list[Path]:
        """The files that the table is read from, in their order."""
        return self._format.files

    @property
    def folder(self) -> Path:
        """The folder that paths in the table are relative to."""
        return self.path if self.path.is_dir() else self.path.parent

    def mark_unusable(self, what: str, reason: str) -> None:
        """Record a row with something unusable."""
        self._dropped[what] += 1
        kept = self.unusable.setdefault(what, [])
        if len(kept) < MAX_KEPT:
            kept.append(reason)

    def check_unusable(self) -> None:
        """Raise an error that lists all unusable rows, if the settings say so; call it after the last row."""
        if self.unusable and self.settings.on_error == "stop":
            advice = "fix them, or skip these rows: --set data.on_error=skip in training, --on-error skip elsewhere"
            raise UserError("\n".join([*map(self._list_rows, self.unusable), advice]))

    def _list_rows(self, what: str) -> str:
        reasons = self.unusable[what]
        listed = [f"  {reason}" for reason in reasons[:MAX_LISTED]]
        if self._dropped[what] > MAX_LISTED:
            listed.append(f"  and {self._dropped[what] - MAX_LISTED:,} more")
        rows = counted(self._dropped[what], "row")
        return "\n".join([f"{self.path.name}: {rows} with {what} that cannot be used:", *listed])

    def points(self, value: Any) -> Any:
        """A cell of numbers, those with decimal commas as with points where the table has such."""
        if not isinstance(value, str) or "," not in value or not self._format.decimal_comma:
            return value
        text = decimal_points(value)
        if text != value and not self._decimal:
            self._decimal = f"{shortened(value, 20)} as {shortened(text, 20)}"
        return text

    def skip_blank(self, column: str, line: int, *, rows: int = 1) -> None:
        """Count rows that were skipped because this column is empty; line: of the first."""
        self.blanks.setdefault(column, Blanks(0, line)).rows += rows

    @property
    def notes(self) -> list[str]:
        """Messages about the latest reading, complete after the last row."""
        notes = list(self._format.notes)
        notes += [
            f"{self.path.name}: {counted(blanks.rows, 'row')} with an empty '{column}' left out,"
            f" the first at {self.place_inside(blanks.first)}"
            for column, blanks in self.blanks.items()
        ]
        if self._decimal:
            notes.append(
                f"{self.path.name}: decimal commas are read: {self._decimal} (data.decimal=point: they are not)"
            )
        if self.skipped:
            notes.append(f"{counted(self._dropped[SKIPPED], 'bad row')} skipped; the first: {self.skipped[0]}")
        return notes + [f"left out: {self._list_rows(what)}" for what in self.unusable]

    @property
    def headed(self) -> bool:
        """Whether the first line was read as column names."""
        return self._format.headed

    @property
    def named(self) -> bool:
        """Whether the columns have names of their own (the lines of a .txt file have none)."""
        return self._format.named

    def place(self, line: int) -> str:
        """'pairs.tsv, line 12'"""
        return self._format.place(line)

    def place_inside(self, line: int) -> str:
        """'line 12'; of a table in several files also which one."""
        return self._format.place_inside(line)

    def _too_long(self, row: Row, sizes: Sequence[int]) -> str:
        longest = max(sizes)
        name = list(row.values)[sizes.index(longest)]
        return f"{self.place(row.line)}, column '{name}': {longest:,} characters, at most {MAX_CELL:,}"

    def __iter__(self) -> Iterator[Row]:
        self._reset()
        yield from self.checked(self._format.rows())
        self.check_rows()

    def blocks(self) -> Iterator[Block]:
        """The table in blocks, read again by each call; the rows of a block are to be `checked`."""
        self._reset()
        for block in self._format.blocks():
            if block.content is not None:
                self._count(len(block.content), block.before + block.first)
            yield block

    def layout(self, columns: Sequence[str]) -> Layout | None:
        """How lines of blocks are split into these columns; None where the table has no such blocks."""
        return self._format.layout(columns)

    def block_rows(self, block: Block) -> Iterator[Row]:
        """The rows of a block, one after the other."""
        rows, content = block.rows, block.content
        if rows is None:
            assert content is not None
            rows = block.format.block_rows(content, block.first)
        if block.before:
            rows = (row._replace(line=row.line + block.before) for row in rows)
        return self.checked(rows, counted=content is not None)

    def checked(self, rows: Iterable[Row], *, counted: bool = False) -> Iterator[Row]:
        """The rows within the limits; counted: their size is counted already."""
        for row in rows:
            size = row.size
            if not 0 <= size <= MAX_CELL:
                sizes = [len(value) if type(value) is str else _characters(value) for value in row.values.values()]
                if max(sizes, default=0) > MAX_CELL:
                    self.bad(RowError(self._too_long(row, sizes)))
                    continue
                size = sum(sizes)
            if not counted:
                self._count(size, row.line)
            self._rows += 1
            yield row

    def _count(self, characters: int, line: int) -> None:
        """Refuse a file that unpacks to far more than its size."""
        self._characters += characters
        if self._characters > self._limit:
            raise UserError(
                f"{self.place(line)}: {self._characters:,} characters up to here, in a file of {self._bytes:,} "
                f"bytes; at most {MAX_EXPANSION} times as many, beyond {MAX_UNPACKED:,}"
            )

    def check_rows(self, more: int = 0) -> None:
        """Refuse a table of which no row could be read; more: rows that were read in blocks."""
        if not self._rows + more:
            if self.skipped:
                raise UserError(
                    f"{self.path}: none of its {counted(self._dropped[SKIPPED], 'row')} can be read;"
                    f" the first: {self.skipped[0]}"
                )
            raise UserError(f"{self.path}: a header ({listing(self.columns)}) but no rows")


def _characters(value: Any) -> int:
    """The size of a value, including everything in a list."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):
        return 8 * len(value) + sum(map(_characters, value))
    return 8 + sum(map(_characters, value.values())) if isinstance(value, dict) else 8


def read(path: str | Path, *, settings: DataSettings | None = None) -> Table:
    """Open a table; a missing, empty or unreadable one and a bad first row are reported at once."""
    path = Path(path)
    settings = settings or DataSettings()
    check_encoding(settings.encoding)
    if names_several(path):
        table = Table(path, settings, partial(Shards, shards_of(path)))
    else:
        check_exists(split_sheet(path)[0])
        table = Table(path, settings, formats["folder"] if path.is_dir() else format_of(path))
    next(iter(table))
    return table


SHARD_LINES = 1 << 48
"""Added to the numbers of lines of each further file, so that a number tells its file."""


class Shards(Format):
    """Several files as one table. They have the same columns."""

    def __init__(self, files: Sequence[Path], path: Path, settings: DataSettings, **options: Any):
        super().__init__(path, settings, **options)
        self._parts = [format_of(file)(file, settings, **options) for file in files]
        self.unit, self.headed, self.named = self._parts[0].unit, self._parts[0].headed, self._parts[0].named

    @property
    def files(self) -> list[Path]:
        return [part.path for part in self._parts]

    @property
    def decimal_comma(self) -> bool:
        return self._parts[0].decimal_comma

    @property
    def notes(self) -> list[str]:
        return [note for part in self._parts for note in part.notes]

    def columns(self) -> list[str]:
        columns = self._parts[0].columns()
        for part in self._parts[1:]:
            others = part.columns()
            if set(others) != set(columns):
                raise UserError(
                    f"{part.path}: columns {listing(others)}, but {self._parts[0].path} has {listing(columns)}; the "
                    "files of one table have the same columns"
                )
        return columns

    def rows(self) -> Iterator[Row]:
        for number, part in enumerate(self._parts):
            for row in part.rows():
                yield row._replace(line=row.line + number * SHARD_LINES)

    def blocks(self) -> Iterator[Block]:
        for number, part in enumerate(self._parts):
            for block in part.blocks():
                yield block._replace(before=number * SHARD_LINES)

    def layout(self, columns: Sequence[str]) -> Layout | None:
        layouts = [part.layout(columns) for part in self._parts]
        return layouts[0] if all(layout == layouts[0] for layout in layouts) else None

    def place(self, line: int) -> str:
        number, line = divmod(line, SHARD_LINES)
        return self._parts[number].place(line)

    def place_inside(self, line: int) -> str:
        number, line = divmod(line, SHARD_LINES)
        part = self._parts[number]
        return f"{part.path.name}, {part.place_inside(line)}"

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        raise NotImplementedError("a table in several files is not written")


def write(
    path: str | Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, like: Table | None = None
) -> None:
    """Write a table in the format of its suffix. The file appears complete or not at all. like: a table whose dialect a
    .csv file gets if it is one too."""
    path = Path(path)
    kind = format_of(path)
    if path.suffix == ".zst":
        raise UserError(f"{path}: tables are written as they are or as .gz, not as .zst")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist")
    part = path.with_name(f".{path.name}.part")
    try:
        packed = path.suffix == ".gz"
        if like is not None and like.dialect is not None and issubclass(kind, Csv):
            kind.write_as(part, rows, list(columns), like.dialect, packed=packed)
        else:
            kind.write(part, rows, list(columns), packed=packed)
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):  # there is none, or the disk is read-only
            part.unlink()


def format_of(path: Path) -> type[Format]:
    """The format of a file's suffix."""
    path = split_sheet(path)[0]
    suffix = Path(path.stem).suffix if path.suffix in PACKED else path.suffix
    name = suffix.lower().removeprefix(".")
    if name == "folder" or name not in formats:
        known = [f".{other}" for other in formats if other != "folder"]
        raise UserError(
            f"{path}: unknown suffix '{suffix}'{nearest(suffix, known)}; a table must be one of {', '.join(known)},"
            " each but .xlsx also with .gz or .zst, a folder of such files, a pattern (data/*.tsv), or the folder of a"
            " Hugging Face dataset"
        )
    return formats[name]


VARIABLE, DEFAULT_FOLDER = "SEQ2SEE_DATA", "../shared/data"
"""The environment variable with the folder of data sets, and the folder used without it."""


def locate(name: str | Path) -> tuple[Path, Path | None]:
    """(training table, dev table or None) for a path or the name of a data set.

    `name` is a file, a folder with train.* and dev.*, or either of these inside the folder of data sets. A local folder
    without a table does not hide the data set of that name, because people name runs after their data. A path that does
    not exist is returned unchanged; reading it reports the error.
    """
    for path in (Path(name), data_folder() / name):
        train = table_in(path, "train") if path.is_dir() else None
        if train is not None:
            return train, table_in(path, "dev")
        if path.is_file() or any((path / mark).exists() for mark in MARKS):
            return path, None
    if Path(name).exists() or names_several(name):
        return Path(name), None
    known = data_sets()
    if len(Path(name).parts) == 1 and not Path(name).suffix and known:
        raise UserError(
            f"{name}: no such file or data set{nearest(str(name), known)};"
            f" data sets in {data_folder()}: {', '.join(known)}"
        )
    return Path(name), None


def data_folder() -> Path:
    """The folder of data sets."""
    return configured_folder() or Path(DEFAULT_FOLDER)


def configured_folder() -> Path | None:
    """The folder of data sets if the user configured one. The default is a guess: good enough to look up names, but
    its contents are not listed to others."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def data_sets() -> list[str]:
    """Names of the data sets in that folder that have a training table."""
    if not data_folder().is_dir():
        return []
    return sorted(path.name for path in data_folder().iterdir() if path.is_dir() and table_in(path, "train"))


def table_in(folder: Path, stem: str) -> Path | None:
    """The table in a folder whose name without suffixes is `stem`."""
    known = {name for name in formats if name != "folder"}
    for path in sorted(folder.glob(f"{stem}.*")):
        parts = path.name.removeprefix(f"{stem}.").split(".")
        if parts[0] in known and parts[1:] in ([], *([suffix[1:]] for suffix in PACKED)):
            return path
    return None
