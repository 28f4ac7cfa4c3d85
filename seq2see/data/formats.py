"""Table formats by suffix: plain text, JSON lines, Hugging Face datasets (delimited and Parquet have their own
files)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from seq2see.data.sources import RowError, block_lines, read_blocks, read_lines
from seq2see.errors import UserError, imported, listing, nearest
from seq2see.files import text_file
from seq2see.registry import Registry
from seq2see.settings.base import Count, Settings, Share


class DataSettings(Settings):
    """How tables are read."""

    dev_share: Share = Field(0.05, description="share of the rows held out for development without --dev")
    dev_most: Count = Field(2000, description="maximum number of rows held out")
    delimiter: Literal["comma", "semicolon", "tab", "pipe", ",", ";", "\t", "|"] | None = Field(
        None, description="delimiter of .csv and .tsv files (default: detected)"
    )
    decimal: Literal["point", "comma"] | None = Field(
        None,
        description="decimal mark of numbers (default: comma in files with semicolons between fields, otherwise point)",
    )
    quoting: bool | None = Field(None, description="whether fields may be quoted (default: yes for .csv, no for .tsv)")
    encoding: str = Field("utf-8", description="encoding of text files")
    on_error: Literal["stop", "skip"] = Field(
        "stop",
        description="what to do with rows that cannot be read; rows with an empty input or output are skipped",
    )
    stream: bool = Field(False, description="whether a language model reads one contiguous text instead of rows")
    shuffle_rows: Count = Field(
        0,
        description="minimum number of rows that are held and shuffled at a time, read as training needs them: "
        "for tables too large to be encoded first; 0: all rows are encoded and shuffled",
    )


UNKNOWN = -1


class Row(NamedTuple):
    """Values by column, and the line where they begin (the row number in formats without lines).

    size: an upper bound of the characters of any value, to avoid measuring each; for rows read in blocks it may be
    their mean if the whole block is within the limit of a value.
    """

    values: dict[str, Any]
    line: int
    size: int = UNKNOWN


class Format(ABC):
    """Reader and writer of one format. A reader passes rows it cannot read to `bad` and continues if that returns."""

    unit = "line"
    headed = False
    """Whether the first line names the columns."""
    named = True
    """Whether the file names its columns."""
    one_column = False
    """Whether a file has a single column, so that none can be added."""
    in_memory = False
    """Whether the rows are held in memory, so that nothing was unpacked from a file."""

    def __init__(self, path: Path, settings: DataSettings, *, bad: Callable[[RowError], None]):
        self.path = path
        self.settings = settings
        self.bad = bad

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers are written with decimal commas."""
        return self.settings.decimal == "comma"

    @property
    def notes(self) -> list[str]:
        """Decisions made while reading that the user should know."""
        return []

    @abstractmethod
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Every row, from the start at each call."""

    @property
    def files(self) -> list[Path]:
        """The files that the rows are read from."""
        if not self.path.is_dir():
            return [self.path]
        return sorted(path for path in self.path.rglob("*") if path.is_file())

    def blocks(self) -> Iterator[Block]:
        """All rows in pieces, from the start at each call. Formats whose lines can be read each by itself give blocks
        of lines; others their rows."""
        yield Block(self, rows=self.rows())

    def layout(self, columns: Sequence[str]) -> Layout | None:
        """How lines of blocks are split into these columns; None where there are no such blocks."""
        return None

    def block_rows(self, content: bytes, first: int) -> Iterator[Row]:
        """The rows of a block of lines, read as `rows` reads them."""
        raise NotImplementedError(f"{type(self).__name__} has no blocks of lines")

    def place(self, line: int) -> str:
        """Where a row is: 'pairs.tsv, line 12'."""
        return f"{self.path}, {self.unit} {line}"

    def place_inside(self, line: int) -> str:
        """The same without the table's own name."""
        return f"{self.unit} {line}"

    @staticmethod
    @abstractmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        """Write a table; packed: compressed with gzip."""


class Block(NamedTuple):
    """A piece of a table. content: bytes of whole lines, each of which can be read without the others; first: the
    number of the first; None: `rows` has the rows, one after the other; format: that knows how to read them; before:
    added to the numbers of lines, which tell where in the whole table they are."""

    format: Format
    content: bytes | None = None
    first: int = 1
    rows: Iterator[Row] | None = None
    before: int = 0


@dataclass(frozen=True)
class Layout:
    """How the lines of a block are split. kind: fields between delimiters, JSON objects, or lines of plain text;
    columns: for each column of a recipe its place among the fields, or its key; width: the number of fields; quoted:
    fields may be quoted; keys: that every object has."""

    kind: Literal["fields", "objects", "lines"]
    columns: list[Any]
    delimiter: str = "\t"
    width: int = 0
    quoted: bool = False
    keys: list[str] = field(default_factory=list)

    def split(self, content: bytes, most: int) -> list[list[str]] | None:
        """The values of each column; None where a line is unusual in any way and has to be read by itself.

        most: characters of a value.
        """
        if len(content) > most:
            return None
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            return None
        text = text.replace("\r\n", "\n")
        if "\r" in text or (self.quoted and '"' in text):
            return None
        if self.kind == "fields":
            return self._fields(text)
        lines = text.removesuffix("\n").split("\n")
        if self.kind == "lines":
            return [lines for _ in self.columns]
        return None if "\\u" in text and "\\ud" in text.lower() else self._objects(lines)

    def _fields(self, text: str) -> list[list[str]] | None:
        """All fields at once, if every line has as many as there are columns."""
        if not text.endswith("\n"):
            text += "\n"
        characters = np.frombuffer(text.encode("utf-8"), dtype=np.uint8)
        marks = characters[(characters == ord("\n")) | (characters == ord(self.delimiter))]
        ends = np.flatnonzero(marks == ord("\n"))
        if self.width < 2 or not np.array_equal(ends, np.arange(self.width - 1, len(marks), self.width)):
            return None
        fields = text.replace("\n", self.delimiter).split(self.delimiter)
        return [fields[i : -1 : self.width] for i in self.columns]

    def _objects(self, lines: list[str]) -> list[list[str]] | None:
        try:
            rows = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            return None
        keys = set(self.keys)
        if not all(type(row) is dict and row.keys() >= keys for row in rows):
            return None
        columns = [[row[key] for row in rows] for key in self.columns]
        return columns if set(map(type, chain.from_iterable(columns))) == {str} else None


formats: Registry[type[Format]] = Registry("format of tables")


def line_blocks(form: Format) -> Iterator[Block]:
    """The lines of a file in blocks; its rows, where lines cannot be told apart before they are decoded."""
    blocks = read_blocks(form.path, encoding=form.settings.encoding, bad=form.bad)
    if blocks is None:
        yield Block(form, rows=form.rows())
    else:
        yield from (Block(form, content, first) for first, content in blocks)


def as_text(value: Any) -> str:
    """A value as text: empty for None, JSON for anything but text and numbers."""
    if value is None:
        return ""
    return str(value) if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


COLUMN = "text"


@formats.register("txt")
class Plain(Format):
    """Every line is a row, including empty ones, so that line 7 of the predictions belongs to line 7 of the file."""

    named = False
    one_column = True

    def columns(self) -> list[str]:
        if not any(text.strip() for _, text in read_lines(self.path, encoding=self.settings.encoding, bad=self.bad)):
            raise UserError(f"{self.path}: the file is empty")
        return [COLUMN]

    def rows(self) -> Iterator[Row]:
        for line, text in read_lines(self.path, encoding=self.settings.encoding, bad=self.bad):
            yield Row({COLUMN: text}, line, len(text))

    def blocks(self) -> Iterator[Block]:
        return line_blocks(self)

    def layout(self, columns: Sequence[str]) -> Layout | None:
        return Layout("lines", list(columns))

    def block_rows(self, content: bytes, first: int) -> Iterator[Row]:
        for line, text in block_lines(self.path, content, first, encoding=self.settings.encoding, bad=self.bad):
            yield Row({COLUMN: text}, line, len(text))

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        if len(columns) != 1:
            raise UserError(
                f"a .txt file has one column, not {len(columns)} ({', '.join(columns)}); write .tsv, .csv or .jsonl"
            )
        with text_file(path, packed=packed) as file:
            for row in rows:
                file.write(" ".join(as_text(row.get(columns[0])).splitlines()) + "\n")


@formats.register("jsonl")
class JsonLines(Format):
    """The keys of the first object are the columns; later objects must have them and may have more."""

    _columns: list[str]

    def columns(self) -> list[str]:
        first = next(self._objects(), None)
        if first is None:
            raise UserError(f"{self.path}: the file is empty")
        self._columns = list(first[1])
        if not self._columns:
            raise UserError(f"{self.path}, line {first[0]}: an object without keys")
        return self._columns

    def rows(self) -> Iterator[Row]:
        return self._rows(self._objects())

    def blocks(self) -> Iterator[Block]:
        return line_blocks(self)

    def layout(self, columns: Sequence[str]) -> Layout | None:
        return Layout("objects", list(columns), keys=self._columns)

    def block_rows(self, content: bytes, first: int) -> Iterator[Row]:
        lines = block_lines(self.path, content, first, encoding=self.settings.encoding, bad=self.bad)
        return self._rows(self._objects(lines))

    def _rows(self, objects: Iterator[tuple[int, dict[str, Any], int]]) -> Iterator[Row]:
        expected = set(self._columns)
        for line, values, size in objects:
            if not expected <= values.keys():
                missing = [name for name in self._columns if name not in values]
                self.bad(
                    RowError(
                        f"{self.path}, line {line}: key '{missing[0]}' is missing{nearest(missing[0], values)};"
                        f" found: {listing(values)}"
                    )
                )
                continue
            yield Row(values, line, size)

    def _objects(self, lines: Iterator[tuple[int, str]] | None = None) -> Iterator[tuple[int, dict[str, Any], int]]:
        """(line, object, its size: of one with lists or objects in it, which take more than they are written with, it
        is not known); lines: all by default."""
        for line, text in lines or read_lines(self.path, encoding=self.settings.encoding, bad=self.bad):
            if not text or text.isspace():
                continue
            try:
                flat = "[" not in text and text.count("{") == 1
                yield line, _object(text), len(text) if flat else UNKNOWN
            except ValueError as error:
                self.bad(RowError(f"{self.path}, line {line}{error}"))

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        with text_file(path, packed=packed) as file:
            for row in rows:
                file.write(json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False) + "\n")


def _object(text: str) -> dict[str, Any]:
    """A JSON object; a ValueError says what is wrong."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f", character {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(": JSON is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise ValueError(f": cannot read JSON: {str(error).partition(';')[0]}") from None
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a string", type(None): "null"}.get(type(value), "a number or truth value")
        raise ValueError(f': expected an object {{"column": value}}, found {kind}')
    if "\\u" in text and "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(": half of a surrogate pair (\\ud800 to \\udfff) is not text") from None
    return value


@formats.register("folder")
class SavedDataset(Format):
    """A Hugging Face dataset saved with `save_to_disk`, read from memory-mapped Arrow files."""

    unit = "row"

    def columns(self) -> list[str]:
        splits = self.path / "dataset_dict.json"
        if splits.exists():
            names = sorted(part.name for part in self.path.iterdir() if (part / "state.json").exists())
            example = f", for example {self.path / names[0]}" if names else ""
            raise UserError(
                f"{self.path}: a dataset with several splits ({', '.join(names)}): give the folder of one{example}"
            )
        self._dataset = self._load()
        if not len(self._dataset):
            raise UserError(f"{self.path}: columns ({listing(self._dataset.column_names)}) but no rows")
        return [str(name) for name in self._dataset.column_names]

    def _load(self) -> Any:
        datasets = imported("datasets", extra="datasets")
        try:
            return datasets.load_from_disk(str(self.path))
        except Exception as error:  # noqa: BLE001 - the library raises many kinds for a damaged folder
            raise UserError(f"{self.path}: damaged dataset folder: {error}") from None

    def rows(self) -> Iterator[Row]:
        number = 0
        try:
            for number, values in enumerate(self._dataset, start=1):
                yield Row(dict(values), number)
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise UserError(f"{self.path}, after row {number}: cannot be read: {error}") from None

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        raise UserError(f"{path}: dataset folders cannot be written; write .parquet, .jsonl, .tsv or .csv")
