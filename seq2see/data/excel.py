"""Sheets of Excel workbooks (.xlsx), read with openpyxl one row at a time: `book.xlsx`, `book.xlsx#Sheet`."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from seq2see.data.formats import Format, Row, as_text, formats
from seq2see.data.sources import PACKED, RowError
from seq2see.errors import UserError, imported, listing, nearest

MAX_LINES = 1 << 20
"""Rows of a sheet; the file's own numbers of rows are not trusted."""
MAX_WRITTEN = 32_767
"""Characters of a cell."""
MAX_EXPANSION, MAX_UNPACKED = 200, 1 << 28
"""Bytes that a workbook may unpack to: relative to its file size, and in any case."""
_SHEET = re.compile(r"(.+?\.xlsx)#(.+)", re.IGNORECASE | re.DOTALL)
_ERROR = "e"
"""openpyxl's type of a cell that holds an error (#N/A)."""


def split_sheet(path: Path) -> tuple[Path, str | None]:
    """(the file, the sheet) that a path names.

    >>> split_sheet(Path("data/book.xlsx#List 2")), split_sheet(Path("pairs.tsv"))
    ((PosixPath('data/book.xlsx'), 'List 2'), (PosixPath('pairs.tsv'), None))
    """
    found = _SHEET.fullmatch(path.name)
    return (path, None) if found is None or path.exists() else (path.with_name(found[1]), found[2])


@formats.register("xlsx")
class Sheet(Format):
    """The first row that is not empty names the columns; columns without a name are not read, nor are empty rows
    behind the last one; others keep their place. Formulas have the value that the workbook was
    saved with; errors such as #N/A are empty."""

    unit = "row"
    headed = True
    _columns: dict[int, str]

    @property
    def files(self) -> list[Path]:
        return [split_sheet(self.path)[0]]

    def columns(self) -> list[str]:
        header = next(self._lines(), None)
        if header is None:
            raise UserError(f"{self.path}: the sheet is empty")
        line, cells = header
        names = {place: as_text(cell).strip() for place, cell in enumerate(cells)}
        self._columns = {place: name for place, name in names.items() if name}
        twice = sorted(name for name, number in Counter(self._columns.values()).items() if number > 1)
        if twice:
            raise UserError(f"{self.path}, row {line}: column {listing(map(repr, twice))} occurs twice in the header")
        return list(self._columns.values())

    def rows(self) -> Iterator[Row]:
        last = max(self._columns)
        for line, cells in islice(self._lines(), 1, None):
            extra = next((place for place, cell in enumerate(cells) if place > last and cell != ""), None)
            if extra is not None:
                what = f"a value in column {extra + 1}, and the header ends at column {last + 1}"
                self.bad(RowError(f"{self.path}, row {line}: {what} ({listing(self._columns.values())})"))
                continue
            yield Row({name: cells[i] if i < len(cells) else "" for i, name in self._columns.items()}, line)

    def _lines(self) -> Iterator[tuple[int, list[Any]]]:
        """(number from 1, values) of the rows from the header to the last that is not empty; an empty one has none."""
        next_line = 0
        with self._sheet() as sheet:
            for line, cells in enumerate(sheet.iter_rows(), start=1):
                if line > MAX_LINES:
                    raise UserError(f"{self.path}: more than {MAX_LINES:,} rows")
                values = [_value(cell) for cell in cells]
                if any(value != "" for value in values):
                    yield from ((empty, []) for empty in range(next_line or line, line))
                    yield line, values
                    next_line = line + 1

    @contextmanager
    def _sheet(self) -> Iterator[Any]:
        """The open sheet; problems of the file become UserErrors."""
        openpyxl = imported("openpyxl", extra="excel")
        (file,), wanted = self.files, split_sheet(self.path)[1]
        if file.suffix in PACKED:
            raise UserError(f"{file}: a workbook is compressed already; unpack it and name it .xlsx")
        self._check_size(file)
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        except Exception as error:  # noqa: BLE001 - the library raises many kinds for a damaged file
            raise UserError(f"{file}: not an Excel workbook, or a damaged one: {error}") from None
        try:
            sheet = book[self._choose([one.title for one in book.worksheets], file, wanted)]
            sheet.reset_dimensions()
            yield sheet
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise UserError(f"{self.path}: a damaged workbook: {type(error).__name__}: {error}") from None
        finally:
            book.close()

    @staticmethod
    def _choose(sheets: Sequence[str], file: Path, wanted: str | None) -> str:
        if wanted is None:
            if len(sheets) == 1:
                return sheets[0]
            example = f"; name one, for example '{file}#{sheets[0]}'" if sheets else ""
            raise UserError(f"{file}: {len(sheets)} sheets ({listing(sheets)}){example}")
        if wanted not in sheets:
            raise UserError(f"{file}: no sheet '{wanted}'{nearest(wanted, sheets)}; it has: {listing(sheets)}")
        return wanted

    @staticmethod
    def _check_size(file: Path) -> None:
        """Refuse an archive that unpacks to far more than its size, or with entities that do."""
        try:
            packed = file.stat().st_size
            with zipfile.ZipFile(file) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
                if size > max(MAX_UNPACKED, MAX_EXPANSION * packed):
                    raise UserError(
                        f"{file}: {packed:,} bytes unpack to {size:,}; at most {MAX_EXPANSION} times as many"
                    )
                for entry in archive.infolist():
                    with archive.open(entry) as part:
                        if b"<!DOCTYPE" in part.read(1 << 12):
                            raise UserError(f"{file}: {entry.filename} declares entities, which no spreadsheet writes")
        except PermissionError:
            raise UserError(f"{file}: permission denied") from None
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
            raise UserError(f"{file}: not an Excel workbook, or a damaged one: {error}") from None

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        if packed:
            raise UserError(f"{path}: a workbook is compressed already; write .xlsx")
        openpyxl = imported("openpyxl", extra="excel")
        cell, illegal = imported("openpyxl.cell", extra="excel"), imported("openpyxl.cell.cell", extra="excel")
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()

        def written(value: Any, column: str, line: int) -> Any:
            if value is None or isinstance(value, bool | int | float):
                return value
            text = illegal.ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", as_text(value))
            if len(text) > MAX_WRITTEN:
                raise UserError(
                    f"row {line}, column '{column}': {len(text):,} characters, and a cell of .xlsx has at most "
                    f"{MAX_WRITTEN:,}; write .tsv, .csv or .jsonl"
                )
            made = cell.WriteOnlyCell(sheet, value=text)
            made.data_type = "s"  # a text that begins with = is no formula
            return made

        try:
            sheet.append([written(name, name, 1) for name in columns])
            for line, row in enumerate(rows, start=2):
                if line > MAX_LINES:
                    raise UserError(f"a sheet has at most {MAX_LINES:,} rows; write .tsv, .csv or .jsonl")
                sheet.append([written(row.get(name), name, line) for name in columns])
        finally:
            sheet.close()
        book.save(path)


def _value(cell: Any) -> Any:
    """A cell as text, a number or a truth value; dates in ISO 8601; empty for nothing and for errors."""
    value = cell.value
    if value is None or cell.data_type == _ERROR:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else value
