"""Rows in memory, read like any other table: lists of dicts or of pairs, DataFrames, Hugging Face datasets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seq2see.data.formats import DataSettings, Format, Row
from seq2see.data.tables import Table
from seq2see.errors import UserError, imported, nearest

Record = dict[str, Any]
Data = str | Path | Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]] | Any
"""A table: a path, a list of rows (dicts by column, or values in the recipe's order), or a DataFrame (pandas, polars,
pyarrow, Hugging Face, or whatever speaks the interchange protocol)."""

NAME = "the rows given"
_PROTOCOLS = ("__arrow_c_stream__", "__dataframe__")
"""Methods by which a library hands its tables to others; pyarrow takes them."""


def is_frame(data: Any) -> bool:
    """Whether an object has rows and named columns but is not a list."""
    if isinstance(data, str | bytes | Path | Mapping | Sequence) or is_series(data):
        return False
    named = any(hasattr(data, name) for name in ("to_dicts", "column_names", "collect_schema", *_PROTOCOLS))
    return named or (hasattr(data, "columns") and hasattr(data, "to_dict"))


def is_series(data: Any) -> bool:
    """Whether an object is a column of a DataFrame or dataset: many values, which have no names."""
    if isinstance(data, str | bytes | list | tuple | Mapping):
        return False
    listed = any(hasattr(data, name) for name in ("to_list", "to_pylist"))
    return isinstance(data, Sequence) or (listed and not hasattr(data, "column_names"))


def values_of(series: Any) -> list[Any]:
    """The values of a column, missing ones as empty text."""
    values: Iterable[Any]
    if isinstance(series, Sequence):
        values = series
    else:
        values = series.to_list() if hasattr(series, "to_list") else series.to_pylist()
    return [_plain(value, f"value {number}") for number, value in enumerate(values, start=1)]


def _rows_of(frame: Any) -> Iterable[Any]:
    """The rows of a DataFrame, for each library."""
    rows: Iterable[Any]
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # a query of polars
        frame = frame.collect()
    if hasattr(frame, "to_dicts"):  # polars
        rows = frame.to_dicts()
    elif hasattr(frame, "to_pylist"):  # pyarrow
        rows = frame.to_pylist()
    elif hasattr(frame, "column_names") and hasattr(frame, "__iter__"):  # Hugging Face
        rows = frame
    elif hasattr(frame, "columns") and hasattr(frame, "to_dict"):  # pandas
        rows = frame.to_dict("records")
    elif hasattr(frame, "__arrow_c_stream__"):
        rows = imported("pyarrow", extra="parquet").table(frame).to_pylist()
    else:
        rows = imported("pyarrow.interchange", extra="parquet").from_dataframe(frame).to_pylist()
    return rows


def records_of(data: Data, *, what: str = "data", names: Sequence[str] = (), least: int | None = None) -> list[Record]:
    """The rows with plain values, missing ones as empty text.

    what: name of the argument, for messages; names: of the values of a row that is no dict, in order; least: how many
    of them it has at least (default: all).
    """
    rows: Iterable[Any]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        rows = data
    elif is_frame(data):
        rows = _rows_of(data)
    else:
        raise UserError(_type_error(what, data))
    least = len(names) if least is None else least
    records = [_record(row, number, what, names, least) for number, row in enumerate(rows, start=1)]
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
    if isinstance(data, Mapping) and data and all(is_frame(part) for part in data.values()):
        names = [repr(name) for name in data]
        return f"{what}: a dataset with several splits ({', '.join(names)}): give one, for example {what}[{names[0]}]"
    return (
        f"{what}: expected the path of a table, a list of rows ({{column: value}}, or values in the recipe's order) or "
        f"a DataFrame, got {type(data).__name__}"
    )


def _record(row: Any, number: int, what: str, names: Sequence[str], least: int) -> Record:
    if not isinstance(row, Mapping):
        values = [row] if isinstance(row, str) and len(names) == 1 else row
        if not names or not isinstance(values, list | tuple):
            raise UserError(f"{_type_error(what, [])} with {type(row).__name__} as row {number}")
        if not least <= len(values) <= len(names):
            raise UserError(
                f"{what}, row {number}: {len(values)} values, and {len(names)} are expected: {', '.join(names)}"
            )
        row = dict(zip(names, values, strict=False))
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


def table_of(
    data: Data, *, settings: DataSettings, what: str = "data", names: Sequence[str] = (), least: int | None = None
) -> Table:
    """Rows in memory as a table; paths in it are relative to the working folder. names, least: as for `records_of`."""
    return Table(Path(NAME), settings, partial(InMemory, records_of(data, what=what, names=names, least=least)))


def as_lines(records: Sequence[Record], *, files: Sequence[str] = (), ascii_only: bool = False) -> bytes:
    """Rows as the content of a .jsonl table in UTF-8; files: columns of paths, which become absolute; ascii_only: other
    characters are escaped, so that any encoding has them."""
    lines = []
    for number, record in enumerate(records, start=1):
        paths = {key: str(Path(record[key]).absolute()) for key in files if record.get(key)}
        try:
            line = json.dumps(record | paths, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UserError(
                f"{NAME}, row {number}: half of a surrogate pair (\\ud800 to \\udfff) is not text"
            ) from None
        lines.append(json.dumps(record | paths).encode() if ascii_only else line)
    return b"".join(line + b"\n" for line in lines)
