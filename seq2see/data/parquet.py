"""Parquet, read with pyarrow one batch of rows at a time."""

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
from seq2see.data.sources import MAX_CELL, MAX_ROW, PACKED, RowError, open_bytes
from seq2see.errors import UserError, imported, listing

TEXT = "BYTE_ARRAY"
_ROWS = 4096
MAX_BATCH = 1 << 26
"""Bytes of rows that are converted to Python values together."""
MAX_EXPANSION = 1_000
"""How many times larger than in the file a column may be, beyond MAX_BATCH."""
MAX_VALUES = 1_000_000
"""Values in the lists of a row, on average over a row group."""
MAX_UNPACKED = 100
"""How many times larger than a compressed file its content may be, beyond MAX_BATCH."""
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
    """Text is read dictionary-encoded, each distinct value once, so that the decoded size is known before values are
    made: a small page may stand for a value repeated a million times."""

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
                if size <= MAX_BATCH and (rows := _values(batch)) is not None:
                    mean = _mean_size(batch, size)
                    for line, values in enumerate(rows, start=number + 1):
                        yield Row(values, line, mean)
                else:
                    yield from self._single_rows(batch, number)
                number += batch.num_rows

    def _single_rows(self, batch: Any, before: int) -> Iterator[Row]:
        """The rows of a batch in which some are too large or unreadable."""
        for i in range(batch.num_rows):
            row, place = batch.slice(i, 1), f"{self.path}, row {before + i + 1}"
            size = _size(row)
            if size > MAX_ROW:
                self.bad(RowError(f"{place}: {size:,} bytes, at most {MAX_ROW:,} in a row"))
            elif (values := _values(row)) is not None:
                yield Row(values[0], before + i + 1)
            else:
                self.bad(
                    RowError(
                        f"{place}, column '{_unreadable(row)}': not text in UTF-8, or of a type that cannot be read"
                    )
                )

    def _rows_at_once(self, metadata: Any) -> int:
        """Rows of a batch, from the sizes in the metadata; row groups that are too large are refused."""
        widest = 1
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            widest = max(widest, group.total_byte_size // max(group.num_rows, 1))
            for i in range(group.num_columns):
                self._check_chunk(group.column(i), group.num_rows)
        for i in range(metadata.num_columns):
            width = metadata.schema.column(i).length
            if width > MAX_CELL:
                raise UserError(f"{self.path}: values of {width:,} bytes, at most {MAX_CELL:,}")
            widest = max(widest, width)
        return max(1, min(_ROWS, MAX_BATCH // widest))

    def _check_chunk(self, chunk: Any, rows: int) -> None:
        name, size = chunk.path_in_schema, chunk.total_uncompressed_size
        if size > max(MAX_BATCH, MAX_EXPANSION * chunk.total_compressed_size):
            raise UserError(
                f"{self.path}, column '{name}': {chunk.total_compressed_size:,} bytes unpack to {size:,}, more than "
                f"{MAX_EXPANSION:,} times as many"
            )
        if chunk.num_values > MAX_VALUES * max(rows, 1):
            raise UserError(
                f"{self.path}, column '{name}': {chunk.num_values:,} values in {rows:,} rows, at most {MAX_VALUES:,} "
                "in each"
            )

    @contextmanager
    def _file(self) -> Iterator[Any]:
        """The open file. A compressed one is unpacked to disk first, because Parquet is read from its end."""
        arrow, parquet = _pyarrow()
        packed = self.path.suffix in PACKED
        with open_bytes(self.path) as source, tempfile.TemporaryFile() as unpacked:
            if packed:
                self._unpack(source, unpacked)
            place = unpacked if packed else source
            self._probe(place)
            try:
                schema = parquet.ParquetFile(place).schema
                texts = [
                    column.path for column in map(schema.column, range(len(schema))) if column.physical_type == TEXT
                ]
                place.seek(0)
                yield parquet.ParquetFile(place, read_dictionary=texts)
            except UserError:
                raise
            except (arrow.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError) as error:
                raise UserError(f"{self.path}: not a Parquet file, or a damaged one: {error}") from None

    def _probe(self, file: IO[bytes]) -> None:
        """Read the metadata in a separate process once: on some damaged files pyarrow aborts the process without an
        exception."""
        if self._probed:
            return
        file.seek(0)
        command = [sys.executable, "-P", "-c", PROBE]
        try:
            done = subprocess.run(command, stdin=file, capture_output=True, check=False, timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            message = f"reading its metadata takes more than {PROBE_SECONDS} s"
            raise UserError(f"{self.path}: {message}") from None
        file.seek(0)
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["unknown reason"]
            raise UserError(f"{self.path}: not a Parquet file, or a damaged one: {lines[-1].strip()[:LONGEST_REASON]}")
        self._probed = True

    def _unpack(self, source: BinaryIO, unpacked: IO[bytes]) -> None:
        limit = max(MAX_BATCH, MAX_UNPACKED * self.path.stat().st_size)
        while piece := source.read(1 << 20):
            unpacked.write(piece)
            if unpacked.tell() > limit:
                raise UserError(f"{self.path}: unpacks to more than {MAX_UNPACKED} times its own size")
        unpacked.seek(0)

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        import gzip

        arrow, parquet = _pyarrow()
        records = list(rows)  # column types depend on all values
        table = arrow.table({name: [row.get(name) for row in records] for name in columns})
        with gzip.open(path, "wb") if packed else path.open("wb") as file:
            parquet.write_table(table, file)


def _pyarrow() -> tuple[Any, Any]:
    return imported("pyarrow", extra="parquet"), imported("pyarrow.parquet", extra="parquet")


def _values(rows: Any) -> list[dict[str, Any]] | None:
    """Rows by column; None if a value cannot be read."""
    try:
        for i, column in enumerate(rows.columns):
            if hasattr(column, "dictionary_decode"):  # plain strings convert ten times faster
                rows = rows.set_column(i, rows.schema.names[i], column.dictionary_decode())
        values: list[dict[str, Any]] = rows.to_pylist()
    except (ValueError, TypeError, LookupError, ArithmeticError, NotImplementedError, ImportError, OSError):
        return None  # text that is not UTF-8, dates out of range, unsupported types
    return values


def _unreadable(row: Any) -> str:
    """The column of a single row that cannot be read."""
    return next((name for name in row.schema.names if _values(row.select([name])) is None), "")


def _size(rows: Any) -> int:
    """Bytes of the decoded rows, shared texts counted for each row."""
    return sum(_decoded_size(column) for column in rows.columns)


def _mean_size(rows: Any, size: int) -> int:
    """The mean size of rows that have so many bytes together; UNKNOWN if one of them might hold a value that is too
    long. Numbers and nulls count 8 bytes."""
    size += 8 * rows.num_rows * sum(not hasattr(column, "dictionary_decode") for column in rows.columns)
    nested = any(column.type.num_fields for column in rows.columns)
    return UNKNOWN if nested or size > MAX_CELL else -(-size // max(rows.num_rows, 1))


def _decoded_size(array: Any) -> int:
    arrow, compute = imported("pyarrow", extra="parquet"), imported("pyarrow.compute", extra="parquet")
    kind, types = array.type, arrow.types
    if types.is_dictionary(kind) and (types.is_string(kind.value_type) or types.is_binary(kind.value_type)):
        each = compute.take(compute.binary_length(array.dictionary), array.indices)
        return int(compute.sum(compute.cast(each, arrow.int64())).as_py() or 0)
    if types.is_struct(kind):
        return sum(map(_decoded_size, array.flatten()))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind):
        return _decoded_size(array.flatten()) + 8 * len(array)
    return int(array.nbytes)
