"""TSV and CSV: a header, then one row per line, or per quoted record."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from seq2see.data.formats import Format, Row, as_text, formats
from seq2see.data.sources import MOST_CELL, MOST_COLUMNS, MOST_ROW, RowError, lines
from seq2see.errors import UserError, listing
from seq2see.files import text_file

Numbered = tuple[int, str]
Record = tuple[int, list[str], int]
"""The line it begins on, its fields, and its characters."""
MOST_FIELDS = 10 * MOST_COLUMNS
"""Fields that a line is cut into: enough to say that there are too many."""
TOO_LONG = "record too long"

# The csv module has one limit for the whole process, by default of 131,072 characters. It is raised once, before any
# thread reads, so that our own limits hold instead of it (`_quoted_records`); a larger one of the user's stays.
csv.field_size_limit(max(csv.field_size_limit(), MOST_ROW))

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
"""Delimiters with their names; of those that fit a .csv equally well, and give as many fields, the first is taken."""
LOOKED_AT, LOOKED_AT_CHARACTERS = 100, 1_000_000
"""Lines of a .csv by which its delimiter is chosen, fewer where they are long."""


class Delimited(Format):
    """Fields between delimiters. Quoting can be set for both kinds; line numbers stay right across quoted newlines."""

    headed = True
    usual: str
    """The delimiter that the suffix stands for."""
    _delimiter: str | None = None
    quoted: bool
    _columns: list[str]

    @property
    def _quoting(self) -> bool:
        return self.quoted if self.settings.quoting is None else self.settings.quoting

    def columns(self) -> list[str]:
        header = next(self._records(), None)
        if header is None:
            raise UserError(f"{self.path}: the file is empty")
        names = [name.strip() for name in header[1]]
        twice = sorted(name for name, number in Counter(names).items() if number > 1)
        if twice:
            said = listing(map(repr, twice))
            raise UserError(f"{self.path}, line {header[0]}: column {said} occurs twice in the header")
        self._columns = names
        return names

    def rows(self) -> Iterator[Row]:
        names = self._columns
        width = len(names)
        records = self._records()
        next(records)
        for line, values, size in records:
            if len(values) != width:
                self.bad(RowError(self._ragged(line, values)))
                continue
            yield Row(dict(zip(names, values, strict=False)), line, size)

    def _ragged(self, line: int, values: list[str]) -> str:
        width = len(self._columns)
        what = "too few" if len(values) < width else "too many"
        expected = f"{width} expected ({listing(self._columns)})"
        message = f"{self.path}, line {line}: {what} fields: {len(values)} found, {expected}"
        if len(values) < width:
            return f"{message}; column '{self._columns[len(values)]}' is missing"
        return f"{message}; a field that holds {self._named_delimiter} needs quotes" if self._quoting else message

    @property
    def delimiter(self) -> str:
        """The one the settings name, or else the one that was chosen when the header was read."""
        return self._delimiter or self.usual

    @property
    def notes(self) -> list[str]:
        if self.delimiter == self.usual or self.settings.delimiter is not None:
            return []
        chosen, usual = DELIMITERS[self.delimiter], DELIMITERS[self.usual]
        return [
            f"{self.path.name}: fields are separated by a {chosen}, not a {usual} (detected; data.delimiter sets it)"
        ]

    @property
    def _named_delimiter(self) -> str:
        return f"a {DELIMITERS[self.delimiter]}"

    def _records(self) -> Iterator[Record]:
        """Records with the line each begins on; empty lines are no records (unless there is but one column)."""
        numbered = lines(self.path, encoding=self.settings.encoding, bad=self.bad)
        first = next(((number, text) for number, text in numbered if text.strip()), None)
        if first is None:
            return
        if self._delimiter is None:
            looked_at = list(_beginning(numbered))
            self._delimiter = self._choose_delimiter([first[1], *(text for _, text in looked_at)])
            numbered = chain(looked_at, numbered)
        single = self.delimiter not in first[1]
        records = self._quoted_records(first, numbered) if self._quoting else self._plain_records(first, numbered)
        for record in records:
            values = record[1]
            if len(values) > 1 or any(values):
                yield record
            elif single:
                yield record[0], [""], 0

    def _choose_delimiter(self, beginning: Sequence[str]) -> str:
        """The delimiter of the settings, or else the suffix's own; a kind may know better from the first lines."""
        given = self.settings.delimiter
        return {name: one for one, name in DELIMITERS.items()}.get(given, given) if given is not None else self.usual

    def _plain_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        delimiter = self.delimiter
        for number, text in chain([first], rest):
            yield number, text.split(delimiter, MOST_FIELDS), len(text)

    def _quoted_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        feed = _Feed(chain([first], rest))
        reader = csv.reader(feed, delimiter=self.delimiter, strict=True)
        while True:
            feed.begin()
            try:
                values = next(reader)
                if feed.characters > MOST_CELL and max(map(len, values)) > MOST_CELL:
                    raise csv.Error(TOO_LONG)
            except StopIteration:
                return
            except csv.Error as error:
                self.bad(RowError(self._broken_quotes(feed.began, feed.latest, str(error))))
                continue
            yield feed.began, values, feed.characters

    def _broken_quotes(self, began: int, latest: int, error: str) -> str:
        if error == TOO_LONG:
            return (
                f"{self.path}, lines {began} to {latest}: a record of more than {MOST_CELL:,} characters in a field or "
                f"{MOST_ROW:,} in all; is a quote opened at line {began} and never closed?"
            )
        if "unexpected end" in error:
            return f"{self.path}, line {began}: a quote is opened and never closed"
        where = f"line {began}" if began == latest else f"lines {began} to {latest}"
        return (
            f"{self.path}, {where}: quotes are wrong: {error};"
            " a quote inside a quoted field is written twice; data.quoting=false reads quotes as they stand"
        )


class _Feed:
    """Lines for the csv module, which reads on while a quote is open; no record may go on for ever."""

    def __init__(self, numbered: Iterator[Numbered]):
        self._numbered = numbered
        self.begin()

    def begin(self) -> None:
        """A record begins with the next line."""
        self.began = self.latest = self.characters = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        number, text = next(self._numbered)
        self.began, self.latest = self.began or number, number
        self.characters += len(text) + 1
        if self.characters > MOST_ROW:
            raise csv.Error(TOO_LONG)
        return text + "\n"


def _beginning(numbered: Iterator[Numbered]) -> Iterator[Numbered]:
    """The lines by which a delimiter is chosen: some, and not many characters of them."""
    characters = 0
    for number, text in islice(numbered, LOOKED_AT):
        yield number, text
        characters += len(text)
        if characters > LOOKED_AT_CHARACTERS:
            return


@formats.register("tsv")
class Tsv(Delimited):
    usual = "\t"
    quoted = False

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        """Nothing is quoted, so a tab or newline inside a value becomes a space."""
        with text_file(path, packed=packed) as file:
            for values in _lists(rows, columns):
                file.write("\t".join(" ".join(value.splitlines()).replace("\t", " ") for value in values) + "\n")


@formats.register("csv")
class Csv(Delimited):
    usual = ","
    quoted = True

    def _choose_delimiter(self, beginning: Sequence[str]) -> str:
        """Spreadsheets of many countries write semicolons: of the delimiters that divide the header, the one by which
        most of the first rows have as many fields as it; of several the one with most fields, then the first."""
        if self.settings.delimiter is not None:
            return super()._choose_delimiter(beginning)
        fits = {one: _fit(beginning, one, quoted=self._quoting) for one in DELIMITERS}
        return max(fits, key=lambda one: fits[one])

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        with text_file(path, packed=packed) as file:
            csv.writer(file, lineterminator="\n").writerows(_lists(rows, columns))


def _fit(beginning: Sequence[str], delimiter: str, *, quoted: bool) -> tuple[float, int]:
    """(share of rows with as many fields as the header, number of these): the larger, the better a delimiter fits.

    The share is -1 where the header is one field, and 0 where quotes are wrong, as by a delimiter beside the true one.
    """
    wrong = False
    if quoted:
        widths: list[int] = []
        try:
            reader = csv.reader((text + "\n" for text in beginning), delimiter=delimiter, strict=True)
            widths.extend(len(values) for values in reader if values)
        except csv.Error as error:
            # the last row may go on beyond these lines, and long fields are for the reading itself to judge
            wrong = not any(reason in str(error) for reason in ("unexpected end", "larger than field limit"))
    else:
        widths = [text.count(delimiter) + 1 for text in beginning if text]
    if not widths or widths[0] == 1:
        return -1.0, 1
    rows = widths[1:]
    share = sum(width == widths[0] for width in rows) / len(rows) if rows else 1.0
    return 0.0 if wrong else share, widths[0]


def _lists(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[list[str]]:
    yield list(columns)
    for row in rows:
        yield [as_text(row.get(column)) for column in columns]
