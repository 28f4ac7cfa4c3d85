"""Rows of a table as ids, ready to be drawn into batches in any order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import Batch
from seq2see.data.columns import OUTPUT, place_of
from seq2see.data.field import Chosen
from seq2see.data.fields import Fields, sequences
from seq2see.data.store import Ragged, RaggedWriter
from seq2see.errors import UserError


class Dataset:
    """Encoded rows of every column, by name; `left_out` counts rows whose output was too long to train on."""

    def __init__(self, fields: Fields, stores: dict[str, Ragged], *, left_out: int = 0):
        self.fields = fields
        self.stores = stores
        self.left_out = left_out

    @classmethod
    def build(
        cls, fields: Fields, rows: Iterable[Mapping[str, str]], folder: Path | None = None, training: bool = True
    ) -> Dataset:
        """Encode rows as they stream by; into files of `folder` where one is given, so that the disk is the only limit.

        training: rows whose output is too long are left out (and counted), as the recipe's `max_length` says.
        """
        every = fields.all
        writers = {name: RaggedWriter(None if folder is None else folder / name) for name in every}
        left_out = 0
        for number, row in enumerate(rows, start=1):
            try:
                encoded = [(writers[name], field.ids(row[name])) for name, field in every.items()]
            except UserError as error:
                raise UserError(f"{place_of(row, number)}: {error}") from None
            if training and not fields.output.fits(encoded[-1][1]):
                left_out += 1
                continue
            for writer, ids in encoded:
                writer.append(ids)
        return cls(fields, {name: writer.finish() for name, writer in writers.items()}, left_out=left_out)

    def __len__(self) -> int:
        return len(self.stores[OUTPUT])

    @property
    def widths(self) -> NDArray[np.int64]:
        """Symbols of each row by column, inputs first, the output with its `<eos>` last: (rows, columns)"""
        return np.stack([field.widths(self.stores[name]) for name, field in self.fields.all.items()], axis=1)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Symbols of each row, inputs and output added up: (rows,)"""
        return np.asarray(self.widths.sum(1))

    def batch(self, rows: Chosen) -> Batch:
        """The given rows, in the order given."""
        return Batch(
            inputs={name: sequences(field.pad(self.stores[name], rows)) for name, field in self.fields.inputs.items()},
            target=self.fields.output.pad(self.stores[OUTPUT], rows),
            rows=[int(row) for row in rows],
        )
