"""TSV and CSV: a header, then one row per line, or per quoted record."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2see.data.formats import Format, Row, as_text, formats
from seq2see.data.output import text_file
from seq2see.data.sources import RowError, lines
from seq2see.errors import UserError

Numbered = tuple[int, str]
Record = tuple[int, list[str]]
_LONGEST_FIELD = 1 << 24


class Delimited(Format):
    """Fields between delimiters. Quoting can be set for both kinds; line numbers stay right across quoted newlines."""

    headed = True
    delimiter: str
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
    def _named_delimiter(self) -> str:
        return {"\t": "a tab", ",": "a comma", ";": "a semicolon"}[self.delimiter]

    def _records(self) -> Iterator[Record]:
        """Records with the line each begins on; empty lines are no records (unless there is but one column)."""
        numbered = self._after_blank(lines(self.path, encoding=self.settings.encoding, bad=self.bad))
        first = next(numbered, None)
        if first is None:
            return
        self._choose_delimiter(first[1])
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

    def _choose_delimiter(self, header: str) -> None:
        """Keep the suffix's own delimiter; a kind may know better from the header."""

    def _plain_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        yield first[0], first[1].split(self.delimiter)
        for number, text in rest:
            yield number, text.split(self.delimiter)

    def _quoted_records(self, first: Numbered, rest: Iterator[Numbered]) -> Iterator[Record]:
        began = latest = 0

        def feed() -> Iterator[str]:
            nonlocal began, latest
            for number, text in _chain(first, rest):
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


def _chain(first: Numbered, rest: Iterator[Numbered]) -> Iterator[Numbered]:
    yield first
    yield from rest


@formats.register("tsv")
class Tsv(Delimited):
    delimiter = "\t"
    quoted = False

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        """Nothing is quoted, so a tab or newline inside a value becomes a space."""
        with text_file(path, packed=packed) as file:
            for values in _lists(rows, columns):
                file.write("\t".join(" ".join(value.splitlines()).replace("\t", " ") for value in values) + "\n")


@formats.register("csv")
class Csv(Delimited):
    delimiter = ","
    quoted = True

    def _choose_delimiter(self, header: str) -> None:
        """Spreadsheets of many countries write semicolons: taken where the header has no comma."""
        if "," not in header:
            self.delimiter = next((other for other in (";", "\t") if other in header), ",")

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        with text_file(path, packed=packed) as file:
            csv.writer(file, lineterminator="\n").writerows(_lists(rows, columns))


def _lists(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[list[str]]:
    yield list(columns)
    for row in rows:
        yield [as_text(row.get(column)) for column in columns]
