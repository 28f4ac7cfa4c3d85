"""TSV and CSV: a header, then one row per line or per quoted record."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from seq2see.data.formats import Block, Format, Layout, Row, as_text, formats
from seq2see.data.sources import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_ROW,
    WIDE_MARKS,
    RowError,
    block_lines,
    open_bytes,
    read_blocks,
    read_lines,
)
from seq2see.errors import UserError, listing
from seq2see.files import text_file

Numbered = tuple[int, str]
Record = tuple[int, list[str], int]
"""The line where it starts, its fields, and its length in characters."""
MAX_FIELDS = 10 * MAX_COLUMNS
"""Fields that a line is split into: enough to report that there are too many."""
TOO_LONG = "record too long"

# The csv module has one field size limit per process, by default 131,072 characters. It is raised on import, before any
# thread reads, so that our own limits apply (`_quoted_records`); a larger limit set by the user stays.
csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW))

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
"""Delimiters and their names; if several fit a .csv equally well, the first is used."""
SAMPLE_LINES, SAMPLE_CHARACTERS = 100, 1_000_000
"""Lines (and characters) of a .csv from which its delimiter is detected."""


class Delimited(Format):
    """Fields between delimiters, with or without quoting; line numbers stay correct across quoted newlines."""

    headed = True
    default: str
    """The delimiter of the suffix."""
    _delimiter: str | None = None
    quoted: bool
    detected: bool
    """Whether another delimiter than that of the suffix is looked for even if the header has this one."""
    _columns: list[str]
    _single = False
    """Whether there is one column, so that an empty line is a row."""

    @property
    def _quoting(self) -> bool:
        if self.settings.quoting is not None:
            return self.settings.quoting
        return self.quoted or (self.delimiter != self.default and self.settings.delimiter is None)

    def columns(self) -> list[str]:
        header = next(self._records(), None)
        if header is None:
            raise UserError(f"{self.path}: the file is empty")
        names = [name.strip() for name in header[1]]
        twice = sorted(name for name, number in Counter(names).items() if number > 1)
        if twice:
            duplicates = listing(map(repr, twice))
            raise UserError(f"{self.path}, line {header[0]}: column {duplicates} occurs twice in the header")
        self._columns = names
        return names

    def rows(self) -> Iterator[Row]:
        records = self._records()
        next(records)
        return self._rows(records)

    def blocks(self) -> Iterator[Block]:
        """Blocks of lines without the header. From the first quote on, a record may have several lines: these are read
        one after the other."""
        blocks = None if self._single else read_blocks(self.path, encoding=self.settings.encoding, bad=self.bad)
        headed = False
        for first, content in blocks or ():
            if self._quoting and b'"' in content:
                if headed:
                    yield Block(self, rows=self._rows(self._rest(first, content, blocks or iter(()))))
                else:
                    yield Block(self, rows=self.rows())
                return
            while not headed and content:
                line, _, content = content.partition(b"\n")
                first += 1
                headed = bool(line.decode("utf-8", "replace").strip())
            if content:
                yield Block(self, content, first)
        if blocks is None:
            yield Block(self, rows=self.rows())

    def _rest(self, first: int, content: bytes, blocks: Iterator[tuple[int, bytes]]) -> Iterator[Record]:
        """The records from a block on."""
        numbered = (
            line
            for first, content in chain([(first, content)], blocks)
            for line in block_lines(self.path, content, first, encoding=self.settings.encoding, bad=self.bad)
        )
        start = next(numbered, None)
        return iter(()) if start is None else self._split_records(start, numbered)

    def layout(self, columns: Sequence[str]) -> Layout | None:
        places = [self._columns.index(column) for column in columns]
        return Layout("fields", places, self.delimiter, len(self._columns), self._quoting)

    def block_rows(self, content: bytes, first: int) -> Iterator[Row]:
        return self._rows(self._rest(first, content, iter(())))

    def _rows(self, records: Iterator[Record]) -> Iterator[Row]:
        names = self._columns
        width = len(names)
        for line, values, size in records:
            if len(values) != width:
                self.bad(RowError(self._wrong_width(line, values)))
                continue
            yield Row(dict(zip(names, values, strict=False)), line, size)

    def _wrong_width(self, line: int, values: list[str]) -> str:
        width = len(self._columns)
        what = "too few" if len(values) < width else "too many"
        expected = f"{width} expected ({listing(self._columns)})"
        message = f"{self.path}, line {line}: {what} fields: {len(values)} found, {expected}"
        if len(values) < width:
            return f"{message}; column '{self._columns[len(values)]}' is missing"
        return f"{message}; quote fields that contain {self._named_delimiter}" if self._quoting else message

    @property
    def delimiter(self) -> str:
        """The configured delimiter, or the one detected from the header."""
        return self._delimiter or self.default

    @property
    def decimal_comma(self) -> bool:
        """As they are told or, without that, in fields between semicolons: spreadsheets write both or neither."""
        return super().decimal_comma or (self.settings.decimal is None and self.delimiter == ";")

    @property
    def notes(self) -> list[str]:
        if self.delimiter == self.default or self.settings.delimiter is not None:
            return []
        chosen, default = DELIMITERS[self.delimiter], DELIMITERS[self.default]
        return [
            f"{self.path.name}: fields are separated by a {chosen}, not a {default} (detected; data.delimiter sets it)"
        ]

    @property
    def _named_delimiter(self) -> str:
        return f"a {DELIMITERS[self.delimiter]}"

    def _records(self) -> Iterator[Record]:
        """Records with the line where each starts; empty lines are skipped unless there is only one column."""
        numbered = read_lines(self.path, encoding=self.settings.encoding, bad=self.bad)
        first = next(((number, text) for number, text in numbered if text.strip()), None)
        if first is None:
            return
        if self._delimiter is None:
            sample = list(_sample(numbered))
            self._delimiter = self._choose_delimiter([first[1], *(text for _, text in sample)])
            numbered = chain(sample, numbered)
        self._single = self.delimiter not in first[1]
        yield from self._split_records(first, numbered)

    def _split_records(self, first: Numbered, numbered: Iterator[Numbered]) -> Iterator[Record]:
        records = self._quoted_records(first, numbered) if self._quoting else self._plain_records(first, numbered)
        for record in records:
            values = record[1]
            if len(values) > 1 or any(values):
                yield record
            elif self._single:
                yield record[0], [""], 0

    def _choose_delimiter(self, beginning: Sequence[str]) -> str:
        """The configured delimiter, or the one that fits the first lines best: spreadsheets in many countries write
        semicolons. That of the suffix, where the header has it and `detected` does not say otherwise."""
        setting = self.settings.delimiter
        if setting is not None:
            return {name: delimiter for delimiter, name in DELIMITERS.items()}.get(setting, setting)
        if not self.detected and self.default in beginning[0]:
            return self.default
        quoted = True if self.settings.quoting is None else self.settings.quoting
        fits = {delimiter: _fit(beginning, delimiter, quoted=quoted) for delimiter in DELIMITERS}
        best = max(fits, key=lambda delimiter: fits[delimiter])
        return best if self.detected or fits[best][0] == 1 else self.default

    def _plain_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        delimiter = self.delimiter
        for number, text in chain([first], rest):
            yield number, text.split(delimiter, MAX_FIELDS), len(text)

    def _quoted_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        feed = _LineFeed(chain([first], rest))
        reader = csv.reader(feed, delimiter=self.delimiter, strict=True)
        while True:
            feed.begin()
            try:
                values = next(reader)
                if feed.characters > MAX_CELL and max(map(len, values)) > MAX_CELL:
                    raise csv.Error(TOO_LONG)
            except StopIteration:
                return
            except csv.Error as error:
                self.bad(RowError(self._broken_quotes(feed.start, feed.latest, str(error))))
                continue
            yield feed.start, values, feed.characters

    def _broken_quotes(self, start: int, latest: int, error: str) -> str:
        if error == TOO_LONG:
            return (
                f"{self.path}, lines {start} to {latest}: a record of more than {MAX_CELL:,} characters in a field or "
                f"{MAX_ROW:,} in total; is a quote opened at line {start} and never closed?"
            )
        if "unexpected end" in error:
            return f"{self.path}, line {start}: a quote is opened and never closed"
        where = f"line {start}" if start == latest else f"lines {start} to {latest}"
        return (
            f"{self.path}, {where}: bad quoting: {error};"
            " double the quotes inside a quoted field, or read quotes literally with data.quoting=false"
        )


class _LineFeed:
    """Lines for the csv module, which reads on while a quote is open; limits the length of a record."""

    def __init__(self, numbered: Iterator[Numbered]):
        self._numbered = numbered
        self.begin()

    def begin(self) -> None:
        """Start a record at the next line."""
        self.start = self.latest = self.characters = 0

    def __iter__(self) -> _LineFeed:
        return self

    def __next__(self) -> str:
        number, text = next(self._numbered)
        self.start, self.latest = self.start or number, number
        self.characters += len(text) + 1
        if self.characters > MAX_ROW:
            raise csv.Error(TOO_LONG)
        return text + "\n"


def _sample(numbered: Iterator[Numbered]) -> Iterator[Numbered]:
    """The lines from which a delimiter is detected."""
    characters = 0
    for number, text in islice(numbered, SAMPLE_LINES):
        yield number, text
        characters += len(text)
        if characters > SAMPLE_CHARACTERS:
            return


class Dialect(NamedTuple):
    """How a .csv file is written. marked: with a byte order mark; decimal: the mark of numbers; ending: of lines."""

    delimiter: str = ","
    marked: bool = False
    decimal: str = "."
    ending: str = "\n"


MAX_NAMES = 1 << 16
"""Bytes in which the end of the first line is looked for."""


@formats.register("tsv")
class Tsv(Delimited):
    default = "\t"
    quoted = False
    detected = False

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        """Nothing is quoted, so tabs and newlines inside a value become spaces."""
        with text_file(path, packed=packed) as file:
            for values in _lists(rows, columns):
                file.write("\t".join(" ".join(value.splitlines()).replace("\t", " ") for value in values) + "\n")


@formats.register("csv")
class Csv(Delimited):
    default = ","
    quoted = True
    detected = True

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        Csv.write_as(path, rows, columns, Dialect(), packed=packed)

    @property
    def dialect(self) -> Dialect:
        """How the file is written."""
        with open_bytes(self.path) as file:
            start = file.read(MAX_NAMES)
        ending = "\r\n" if start.partition(b"\n")[0].endswith(b"\r") else "\n"
        marked = start.startswith((codecs.BOM_UTF8, *WIDE_MARKS))
        return Dialect(self.delimiter, marked, decimal="," if self.decimal_comma else ".", ending=ending)

    @staticmethod
    def write_as(
        path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], dialect: Dialect, *, packed: bool
    ) -> None:
        """Write a table in a dialect, so that the spreadsheet that wrote another in it can open it."""
        with text_file(path, packed=packed) as file:
            if dialect.marked:
                file.write("\ufeff")
            writer = csv.writer(file, delimiter=dialect.delimiter, lineterminator=dialect.ending)
            writer.writerows(_lists(rows, columns, decimal=dialect.decimal))


def _fit(beginning: Sequence[str], delimiter: str, *, quoted: bool) -> tuple[float, bool, int]:
    """(share of rows with as many fields as the header, whether no space follows it in the header, number of fields):
    the larger, the better a delimiter fits. A comma before a space is more likely part of a name.

    The share is -1 if the header is one field, and 0 if the quoting is wrong.
    """
    bad_quotes = False
    if quoted:
        widths: list[int] = []
        try:
            reader = csv.reader((text + "\n" for text in beginning), delimiter=delimiter, strict=True)
            widths.extend(len(values) for values in reader if values)
        except csv.Error as error:
            # the last row may continue beyond these lines, and long fields are checked when rows are read
            bad_quotes = not any(reason in str(error) for reason in ("unexpected end", "larger than field limit"))
    else:
        widths = [text.count(delimiter) + 1 for text in beginning if text]
    if not widths or widths[0] == 1:
        return -1.0, False, 1
    rows = widths[1:]
    share = sum(width == widths[0] for width in rows) / len(rows) if rows else 1.0
    return 0.0 if bad_quotes else share, f"{delimiter} " not in beginning[0], widths[0]


def _lists(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, decimal: str = ".") -> Iterator[list[str]]:
    yield list(columns)
    for row in rows:
        values = [row.get(column) for column in columns]
        yield [as_text(value).replace(".", decimal) if isinstance(value, float) else as_text(value) for value in values]
