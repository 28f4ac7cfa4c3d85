"""Rows of a table as ids, ready to be drawn into batches in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import Batch
from seq2see.data.columns import ALIGNMENT, OUTPUT, place_of
from seq2see.data.store import Ragged, RaggedWriter
from seq2see.errors import UserError
from seq2see.memory import Copyable
from seq2see.modalities.base import Chosen
from seq2see.pipeline.alignments import shares
from seq2see.pipeline.copying import COPYABLE
from seq2see.pipeline.fields import Fields, readable, sequences, worded, writable


class Dataset:
    """Encoded rows of every column, by name.

    left_out: rows whose output was too long to train on; cut: rows, by input, of which only the beginning is read.
    """

    def __init__(
        self, fields: Fields, stores: dict[str, Ragged], *, left_out: int = 0, cut: Mapping[str, int] | None = None
    ):
        self.fields = fields
        self.stores = stores
        self.left_out = left_out
        self.cut = dict(cut or {})

    @classmethod
    def build(
        cls,
        fields: Fields,
        rows: Iterable[Mapping[str, str]],
        folder: Path | None = None,
        training: bool = True,
        used: Callable[[Mapping[str, str]], None] | None = None,
    ) -> Dataset:
        """Encode rows as they stream by; into files of `folder` where one is given, so that the disk is the only limit.

        training: rows whose output is too long are left out (and counted), as the recipe's `max_length` says.
        used: called with each row that is not left out.
        """
        left_out, cut = 0, Counter[str]()
        with ExitStack() as opened:
            if isinstance(rows, Generator):
                opened.enter_context(closing(rows))
            paths = {name: None if folder is None else folder / name for name in fields.stored}
            writers = {name: opened.enter_context(RaggedWriter(path)) for name, path in paths.items()}
            for number, row in enumerate(rows, start=1):
                try:
                    read = fields.read(row, output=True)
                    encoded = fields.ids(row, read)
                except UserError as error:
                    raise UserError(f"{place_of(row, number)}: {error}") from None
                if training and not fields.output.fits(encoded[OUTPUT]):
                    left_out += 1
                    continue
                if used is not None:
                    used(row)
                for name, ids in encoded.items():
                    writers[name].append(ids)
                cut.update(name for name, field in fields.inputs.items() if field.is_cut(read[name]))
            stores = {name: writer.finish() for name, writer in writers.items()}
        return cls(fields, stores, left_out=left_out, cut=cut)

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
        fields, stores = self.fields, self.stores
        inputs = {name: readable(field.pad(stores[name], rows)) for name, field in fields.inputs.items()}
        target = writable(fields.output.pad(stores[OUTPUT], rows))
        made = Batch(inputs, target, [int(row) for row in rows])
        if fields.copying is not None:
            column = worded(inputs[fields.copying.name])
            inputs[fields.copying.name] = replace(column, copyable=Copyable(stores[COPYABLE].pad(rows, eos=False).ids))
        if fields.aligning is not None:
            steps, places = (sequences(one).ids.shape[1] for one in (target, inputs[fields.aligning.name]))
            made.alignment = shares(stores[ALIGNMENT], made.rows, steps=steps, places=places)
        return made
