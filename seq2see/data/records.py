"""Rows in memory: lists of dicts and DataFrames, read like any other table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from seq2see.data.formats import DataSettings, Format, Row
from seq2see.data.tables import Table
from seq2see.errors import UserError, nearest

Record = dict[str, Any]
Data = str | Path | Sequence[Mapping[str, Any]] | Any
"""A table: a path, a list of dicts by column, or a DataFrame (pandas, polars, pyarrow, Hugging Face)."""

NAME = "the rows given"


def is_path(data: Data) -> TypeGuard[str | Path]:
    return isinstance(data, str | Path)


def is_frame(data: Any) -> bool:
    """Whether an object has rows and named columns but is not a list."""
    if isinstance(data, str | bytes | Path | Mapping | Sequence):
        return False
    pandas = hasattr(data, "columns") and hasattr(data, "to_dict")
    return pandas or any(hasattr(data, name) for name in ("to_dicts", "to_pylist", "column_names"))


def _rows_of(frame: Any) -> Iterable[Any]:
    """The rows of a DataFrame, for each library."""
    rows: Iterable[Any]
    if hasattr(frame, "to_dicts"):  # polars
        rows = frame.to_dicts()
    elif hasattr(frame, "to_pylist"):  # pyarrow
        rows = frame.to_pylist()
    elif hasattr(frame, "column_names"):  # Hugging Face
        rows = frame
    else:  # pandas
        rows = frame.to_dict("records")
    return rows


def records_of(data: Data, *, what: str = "data") -> list[Record]:
    """The rows with plain values, missing ones as empty text; what: name of the argument, for messages."""
    rows: Iterable[Any]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        rows = data
    elif is_frame(data):
        rows = _rows_of(data)
    else:
        raise UserError(_type_error(what, data))
    records = [_record(row, number, what) for number, row in enumerate(rows, start=1)]
    if not records:
        raise UserError(f"{what}: no rows")
    for number, record in enumerate(records, start=1):
        missing = [name for name in records[0] if name not in record]
        if missing:
            raise UserError(
                f"{what}, row {number}: no column '{missing[0]}'{nearest(missing[0], record)}, which row 1 has"
            )
    return records


def _type_error(what: str, data: object) -> str:
    return (
        f"{what}: expected the path of a table, a list of rows ({{column: value}}) or a DataFrame, "
        f"got {type(data).__name__}"
    )


def _record(row: Any, number: int, what: str) -> Record:
    if not isinstance(row, Mapping):
        raise UserError(f"{_type_error(what, [])} with {type(row).__name__} as row {number}")
    invalid = [key for key in row if not isinstance(key, str)]
    if invalid:
        raise UserError(f"{what}, row {number}: column names must be text, got {invalid[0]!r}")
    return {key: _plain(value, f"{what}, row {number}, column '{key}'") for key, value in row.items()}


def _plain(value: Any, place: str) -> Any:
    """A value as in JSON; None, NaN and NA become empty text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item, place) for item in value]
    raise UserError(f"{place}: expected text, a number or a list of them, got {type(value).__name__}")


class InMemory(Format):
    """The keys of the first row are the columns."""

    unit = "row"
    in_memory = True

    def __init__(self, records: Sequence[Record], path: Path, settings: DataSettings, **options: Any):
        super().__init__(path, settings, **options)
        self.records = records

    def columns(self) -> list[str]:
        return list(self.records[0])

    def rows(self) -> Iterator[Row]:
        for number, values in enumerate(self.records, start=1):
            yield Row(values, number)

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        raise NotImplementedError("rows in memory cannot be written in place")


def table_of(data: Data, *, settings: DataSettings, what: str = "data") -> Table:
    """Rows in memory as a table; paths in it are relative to the working folder."""
    return Table(Path(NAME), settings, partial(InMemory, records_of(data, what=what)))


def as_lines(records: Sequence[Record], *, files: Sequence[str] = ()) -> bytes:
    """Rows as the content of a .jsonl table; files: columns of paths, which become absolute."""
    lines = []
    for number, record in enumerate(records, start=1):
        paths = {key: str(Path(record[key]).absolute()) for key in files if record.get(key)}
        try:
            lines.append(json.dumps(record | paths, ensure_ascii=False).encode() + b"\n")
        except UnicodeEncodeError:
            raise UserError(
                f"{NAME}, row {number}: half of a surrogate pair (\\ud800 to \\udfff) is not text"
            ) from None
    return b"".join(lines)
