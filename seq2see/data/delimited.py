"""TSV and CSV: a header, then one row per line, or per quoted record."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from seq2see.data.formats import Format, Row, as_text, formats
from seq2see.data.output import text_file
from seq2see.data.sources import RowError, lines
from seq2see.errors import UserError

Numbered = tuple[int, str]
Record = tuple[int, list[str]]
_LONGEST_FIELD = 1 << 24

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
"""Delimiters with their names; of those that fit a .csv equally well, and give as many fields, the first is taken."""
LOOKED_AT = 100
"""Lines of a .csv by which its delimiter is chosen."""


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
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(
                f"{self.path}, line {header[0]}: column {', '.join(map(repr, twice))} occurs twice in the header"
            )
        self._columns = names
        return names

    def rows(self) -> Iterator[Row]:
        names = self._columns
        width = len(names)
        records = self._records()
        next(records)
        for line, values in records:
            if len(values) != width:
                self.bad(RowError(self._ragged(line, values)))
                continue
            yield Row(dict(zip(names, values, strict=True)), line)

    def _ragged(self, line: int, values: list[str]) -> str:
        width = len(self._columns)
        what = "too few" if len(values) < width else "too many"
        expected = f"{width} expected ({', '.join(self._columns)})"
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
        numbered = self._after_blank(lines(self.path, encoding=self.settings.encoding, bad=self.bad))
        first = next(numbered, None)
        if first is None:
            return
        if self._delimiter is None:
            looked_at = list(islice(numbered, LOOKED_AT))
            self._delimiter = self._choose_delimiter([first[1], *(text for _, text in looked_at)])
            numbered = chain(looked_at, numbered)
        single = self.delimiter not in first[1]
        records = self._quoted_records(first, numbered) if self._quoting else self._plain_records(first, numbered)
        for line, values in records:
            if len(values) > 1 or any(values):
                yield line, values
            elif single:
                yield line, [""]

    @staticmethod
    def _after_blank(numbered: Iterator[Numbered]) -> Iterator[Numbered]:
        for number, text in numbered:
            if text.strip():
                yield number, text
                break
        yield from numbered

    def _choose_delimiter(self, beginning: Sequence[str]) -> str:
        """The delimiter of the settings, or else the suffix's own; a kind may know better from the first lines."""
        given = self.settings.delimiter
        return {name: one for one, name in DELIMITERS.items()}.get(given, given) if given is not None else self.usual

    def _plain_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        yield first[0], first[1].split(self.delimiter)
        for number, text in rest:
            yield number, text.split(self.delimiter)

    def _quoted_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        began = latest = 0

        def feed() -> Iterator[str]:
            nonlocal began, latest
            for number, text in chain([first], rest):
                began, latest = began or number, number
                yield text + "\n"

        csv.field_size_limit(_LONGEST_FIELD)
        reader = csv.reader(feed(), delimiter=self.delimiter, strict=True)
        while True:
            began = 0
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self.bad(RowError(self._broken_quotes(began, latest, str(error))))
                continue
            yield began, values

    def _broken_quotes(self, began: int, latest: int, error: str) -> str:
        if "unexpected end" in error:
            return f"{self.path}, line {began}: a quote is opened and never closed"
        where = f"line {began}" if began == latest else f"lines {began} to {latest}"
        return (
            f"{self.path}, {where}: quotes are wrong: {error};"
            " a quote inside a quoted field is written twice; data.quoting=false reads quotes as they stand"
        )


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
