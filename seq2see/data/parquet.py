"""Parquet, through pyarrow, one batch of rows at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seq2see.data.formats import Format, Row, formats
from seq2see.data.sources import opened
from seq2see.errors import UserError, imported

_ROWS = 4096


@formats.register("parquet")
class Parquet(Format):
    unit = "row"

    def columns(self) -> list[str]:
        with self._file() as file:
            if not file.metadata.num_rows:
                raise UserError(f"{self.path}: columns ({', '.join(file.schema_arrow.names)}) but no rows")
            return [str(name) for name in file.schema_arrow.names]

    def rows(self) -> Iterator[Row]:
        number = 0
        with self._file() as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(values, number)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        """The open file. A packed one is unpacked to disk first: Parquet is read from its end."""
        arrow, reader = _pyarrow()
        with opened(self.path) as source, tempfile.TemporaryFile() as unpacked:
            if self.path.suffix == ".gz":
                shutil.copyfileobj(source, unpacked)
                unpacked.seek(0)
            try:
                yield reader.ParquetFile(unpacked if self.path.suffix == ".gz" else source)
            except (arrow.ArrowInvalid, OSError) as error:
                raise UserError(f"{self.path}: not a Parquet file, or a damaged one: {error}") from None

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
