"""Parquet, through pyarrow, one batch of rows at a time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from seq2see.data.formats import UNKNOWN, Format, Row, formats
from seq2see.data.sources import MOST_CELL, MOST_ROW, RowError, opened
from seq2see.errors import UserError, imported, listing

TEXT = "BYTE_ARRAY"
_ROWS = 4096
MOST_BATCH = 1 << 26
"""Bytes of rows that are made into Python's values together."""
MOST_EXPANSION = 1_000
"""How many times larger than in the file a column may be, beyond MOST_BATCH."""
MOST_VALUES = 1_000_000
"""Values in the lists of a row, on average over a group of rows."""
MOST_UNPACKED = 100
"""How many times larger than the .gz file what is in it may be, beyond MOST_BATCH."""
PROBE_SECONDS = 60
LONGEST_REASON = 200
PROBE = """
import os, sys
from pyarrow.parquet import ParquetFile
metadata = ParquetFile(os.fdopen(0, "rb")).metadata
for number in range(metadata.num_row_groups):
    group = metadata.row_group(number)
    for i in range(group.num_columns):
        group.column(i)
"""


@formats.register("parquet")
class Parquet(Format):
    """Text is read as it is stored, each different value once for many rows, so that what a page of kilobytes stands
    for is known before it is made: a value that is repeated a million times costs as much as one."""

    unit = "row"
    _probed = False

    def columns(self) -> list[str]:
        with self._file() as file:
            names = [str(name) for name in file.schema_arrow.names]
            if not file.metadata.num_rows:
                raise UserError(f"{self.path}: columns ({listing(names)}) but no rows")
            twice = sorted(name for name, number in Counter(names).items() if number > 1)
            if twice:
                raise UserError(f"{self.path}: column {listing(map(repr, twice))} occurs twice")
            return names

    def rows(self) -> Iterator[Row]:
        number = 0
        with self._file() as file:
            for batch in file.iter_batches(batch_size=self._rows_at_once(file.metadata)):
                size = _size(batch)
                if size <= MOST_BATCH and (rows := _values(batch)) is not None:
                    mean = _mean(batch, size)
                    for line, values in enumerate(rows, start=number + 1):
                        yield Row(values, line, mean)
                else:
                    yield from self._one_by_one(batch, number)
                number += batch.num_rows

    def _one_by_one(self, batch: Any, before: int) -> Iterator[Row]:
        """Rows of which some are too large, or cannot be read."""
        for i in range(batch.num_rows):
            row, place = batch.slice(i, 1), f"{self.path}, row {before + i + 1}"
            size = _size(row)
            if size > MOST_ROW:
                self.bad(RowError(f"{place}: {size:,} bytes, at most {MOST_ROW:,} in a row"))
            elif (values := _values(row)) is not None:
                yield Row(values[0], before + i + 1)
            else:
                self.bad(
                    RowError(
                        f"{place}, column '{_unreadable(row)}': not text in UTF-8, or of a type that cannot be read"
                    )
                )

    def _rows_at_once(self, metadata: Any) -> int:
        """Rows of a batch, by what the file says of its groups; groups that would not fit are refused."""
        widest = 1
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            widest = max(widest, group.total_byte_size // max(group.num_rows, 1))
            for i in range(group.num_columns):
                self._check_chunk(group.column(i), group.num_rows)
        for i in range(metadata.num_columns):
            width = metadata.schema.column(i).length
            if width > MOST_CELL:
                raise UserError(f"{self.path}: values of {width:,} bytes, at most {MOST_CELL:,}")
            widest = max(widest, width)
        return max(1, min(_ROWS, MOST_BATCH // widest))

    def _check_chunk(self, chunk: Any, rows: int) -> None:
        name, size = chunk.path_in_schema, chunk.total_uncompressed_size
        if size > max(MOST_BATCH, MOST_EXPANSION * chunk.total_compressed_size):
            raise UserError(
                f"{self.path}, column '{name}': {chunk.total_compressed_size:,} bytes unpack to {size:,}, more than "
                f"{MOST_EXPANSION:,} times as many"
            )
        if chunk.num_values > MOST_VALUES * max(rows, 1):
            raise UserError(
                f"{self.path}, column '{name}': {chunk.num_values:,} values in {rows:,} rows, at most {MOST_VALUES:,} "
                "in each"
            )

    @contextmanager
    def _file(self) -> Iterator[Any]:
        """The open file. A packed one is unpacked to disk first: Parquet is read from its end."""
        arrow, parquet = _pyarrow()
        packed = self.path.suffix == ".gz"
        with opened(self.path) as source, tempfile.TemporaryFile() as unpacked:
            if packed:
                self._unpack(source, unpacked)
            place = unpacked if packed else source
            self._probe(place)
            try:
                schema = parquet.ParquetFile(place).schema
                texts = [one.path for one in map(schema.column, range(len(schema))) if one.physical_type == TEXT]
                place.seek(0)
                yield parquet.ParquetFile(place, read_dictionary=texts)
            except UserError:
                raise
            except (arrow.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError) as error:
                raise UserError(f"{self.path}: not a Parquet file, or a damaged one: {error}") from None

    def _probe(self, file: IO[bytes]) -> None:
        """Have another process read what the file says of its columns, once: pyarrow aborts the process that reads it
        where some of it is damaged, and no exception tells of that."""
        if self._probed:
            return
        file.seek(0)
        command = [sys.executable, "-P", "-c", PROBE]
        try:
            done = subprocess.run(command, stdin=file, capture_output=True, check=False, timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            message = f"what it says of its columns takes more than {PROBE_SECONDS} s to read"
            raise UserError(f"{self.path}: {message}") from None
        file.seek(0)
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason is known"]
            raise UserError(f"{self.path}: not a Parquet file, or a damaged one: {lines[-1].strip()[:LONGEST_REASON]}")
        self._probed = True

    def _unpack(self, source: BinaryIO, unpacked: IO[bytes]) -> None:
        most = max(MOST_BATCH, MOST_UNPACKED * self.path.stat().st_size)
        while piece := source.read(1 << 20):
            unpacked.write(piece)
            if unpacked.tell() > most:
                raise UserError(f"{self.path}: unpacks to more than {MOST_UNPACKED} times its own size")
        unpacked.seek(0)

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        import gzip

        arrow, parquet = _pyarrow()
        whole = list(rows)  # the types of the columns follow from all of the values
        table = arrow.table({name: [row.get(name) for row in whole] for name in columns})
        with gzip.open(path, "wb") if packed else path.open("wb") as file:
            parquet.write_table(table, file)


def _pyarrow() -> tuple[Any, Any]:
    return imported("pyarrow", extra="parquet"), imported("pyarrow.parquet", extra="parquet")


def _values(rows: Any) -> list[dict[str, Any]] | None:
    """Rows by column; None where a value cannot be read."""
    try:
        for i, column in enumerate(rows.columns):
            if hasattr(column, "dictionary_decode"):  # Python's values are made of plain text in a tenth of the time
                rows = rows.set_column(i, rows.schema.names[i], column.dictionary_decode())
        found: list[dict[str, Any]] = rows.to_pylist()
    except (ValueError, TypeError, LookupError, ArithmeticError, NotImplementedError, ImportError, OSError):
        return None  # text that is not UTF-8, dates beyond Python's, types that Python has not
    return found


def _unreadable(row: Any) -> str:
    """The column of a single row that cannot be read."""
    return next((name for name in row.schema.names if _values(row.select([name])) is None), "")


def _size(rows: Any) -> int:
    """Bytes of rows once every value is made, texts that they share counted for each."""
    return sum(_decoded(column) for column in rows.columns)


def _mean(rows: Any, size: int) -> int:
    """The mean size of rows that are so many bytes together; UNKNOWN where one of them might hold a value that is too
    long. Numbers count with 8 bytes, and so does nothing at all, which takes no room in the file."""
    size += 8 * rows.num_rows * sum(not hasattr(column, "dictionary_decode") for column in rows.columns)
    nested = any(column.type.num_fields for column in rows.columns)
    return UNKNOWN if nested or size > MOST_CELL else -(-size // max(rows.num_rows, 1))


def _decoded(array: Any) -> int:
    arrow, compute = imported("pyarrow", extra="parquet"), imported("pyarrow.compute", extra="parquet")
    kind, types = array.type, arrow.types
    if types.is_dictionary(kind) and (types.is_string(kind.value_type) or types.is_binary(kind.value_type)):
        each = compute.take(compute.binary_length(array.dictionary), array.indices)
        return int(compute.sum(compute.cast(each, arrow.int64())).as_py() or 0)
    if types.is_struct(kind):
        return sum(map(_decoded, array.flatten()))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind):
        return _decoded(array.flatten()) + 8 * len(array)
    return int(array.nbytes)
