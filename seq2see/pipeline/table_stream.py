"""Tables too large to be encoded first: rows are read as training needs them, and shuffled among those held.

A window is as many pieces of the table, in its order, as have `data.shuffle_rows` rows. Its rows are encoded, shuffled
and divided into batches as those of a whole table are; then the next window is read. The vocabulary and the dev rows
are those of the first window: rows of others whose hash is below the same threshold are left out. Labels are those of
the whole table, which is read once for them, and so that the length of an epoch is known.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from seq2see.data.blocks import ColumnParts, Encoders
from seq2see.data.columns import Resolution
from seq2see.data.formats import Block, Row
from seq2see.data.sources import MAX_CELL
from seq2see.data.split import HoldOut
from seq2see.data.tables import Table
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.encoded_table import PartNumbers, TableEncoder
from seq2see.pipeline.fields import Fields

ROWS_AT_ONCE = 1 << 12
"""Rows of a piece, where a table is not read in blocks of lines."""
_SAMPLE = 1 << 20
"""Bytes at either end of a file by which a changed table is noticed."""


class Piece(NamedTuple):
    """What a window is made of. rows: their number; held: the rows, where the block has no content."""

    block: Block
    rows: int
    held: list[Row] | None

    @property
    def fresh(self) -> Block:
        """The block, to be read once."""
        return self.block if self.held is None else self.block._replace(rows=iter(self.held))


@dataclass(frozen=True)
class Window:
    """number: of the window; before: pieces before it; pieces: its own; last: whether the table ends with it."""

    number: int
    before: int
    pieces: Sequence[Piece]
    last: bool

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)


class TableStream:
    """The training rows of a table, window by window. rows: of a window, at least, and less than twice as many."""

    def __init__(self, table: Table, resolution: Resolution, columns: Sequence[ColumnParts], *, rows: int):
        self.table, self.resolution, self.columns, self._rows = table, resolution, columns, rows
        self._fields: Fields | None = None
        self._threshold = 0
        self._length = 0

    def __len__(self) -> int:
        """The rows of the table, once they are counted; those that are left out are among them."""
        return self._length

    @property
    def fingerprint(self) -> str:
        """Describes the table, so that a resumed run can tell whether it has changed: its size, and a hash of both ends
        of each file and of the settings that rows depend on."""
        files = [(path, path.stat().st_size) for path in self.table.files]
        hashed = blake2b(
            repr((self.columns, self.resolution.mapping, self._rows, self._threshold)).encode(), digest_size=8
        )
        for path, size in files:
            hashed.update(size.to_bytes(8, "little"))
            with path.open("rb") as file:
                hashed.update(file.read(_SAMPLE))
                file.seek(max(size - _SAMPLE, 0))
                hashed.update(file.read(_SAMPLE))
        return f"{sum(size for _, size in files)} bytes as a stream, hash {hashed.hexdigest()}"

    def count(self, *, processes: int, on_progress: Callable[[int, int], None]) -> dict[str, int]:
        """Read the whole table for its number of rows. Returns its labels and how often each occurs; an output of
        another kind has none. processes: that split the rows of labels; 0: this one does."""
        output = self.columns[-1]
        labels = [output] if output.unit == "value" else []
        layout = self.table.layout([self.resolution.mapping[column.name] for column in labels]) if labels else None
        numbers, size, self._length = PartNumbers(), 0, 0
        blocks = (piece.fresh for piece in self._counted())
        if not labels:
            for block in blocks:
                size += len(block.content or b"")
                on_progress(self._length, size)
            return {}
        with closing(Encoders(labels, layout, processes=processes, most=MAX_CELL)) as encoders:
            for block, process, encoded in encoders.map(blocks, lambda: (0, 0)):
                size += len(block.content or b"")
                if encoded is None:
                    rows = self.resolution.part(self.table, self.table.block_rows(block), filled=[output.name])
                    encoded = encoders.own.encode([[row[output.name] for row in rows]], limit=0, bound=0)
                    process = 0
                numbers.add(process, encoded.new[0], encoded.parts[0], anew=encoded.anew)
                on_progress(self._length, size)
        return numbers.counts()

    def _counted(self) -> Iterator[Piece]:
        for piece in self._pieces():
            self._length += piece.rows
            yield piece

    def use(self, fields: Fields, threshold: int) -> None:
        """Encode rows by these fields, without those whose hash is below the threshold."""
        self._fields, self._threshold = fields, threshold

    def windows(self, *, number: int = 0, before: int = 0) -> Iterator[Window]:
        """The windows of the table, from one on: its number, and the pieces before it."""
        pieces = islice(self._pieces(), before, None)
        ahead = next(pieces, None)
        while ahead is not None:
            held, rows = [ahead], ahead.rows
            ahead = next(pieces, None)
            while ahead is not None and rows < self._rows:
                held.append(ahead)
                rows += ahead.rows
                ahead = next(pieces, None)
            yield Window(number, before, held, last=ahead is None)
            number, before = number + 1, before + len(held)

    def _pieces(self) -> Iterator[Piece]:
        """The table in pieces that have no more rows than a window."""
        for block in self.table.blocks():
            if block.content is not None:
                yield from self._lines(block, block.content)
            while block.rows is not None and (rows := list(islice(block.rows, min(ROWS_AT_ONCE, self._rows)))):
                yield Piece(block, len(rows), rows)

    def _lines(self, block: Block, content: bytes) -> Iterator[Piece]:
        lines = content.count(b"\n") + (not content.endswith(b"\n"))
        if lines <= self._rows:
            yield Piece(block, lines, None)
            return
        whole = io.BytesIO(content)
        for before in range(0, lines, self._rows):
            part = list(islice(whole, self._rows))
            yield Piece(block._replace(content=b"".join(part), first=block.first + before), len(part), None)

    def read(self, window: Window, *, held_out: HoldOut | None = None) -> TableEncoder:
        """The rows of a window, their parts numbered; close it after use. held_out: finds rows to be set aside."""
        encoder = TableEncoder(self.table, self.resolution, self.columns, held_out=held_out, folder=None)
        with closing(Encoders(self.columns, encoder.layout, processes=0, most=MAX_CELL)) as encoders:
            encoder.add(encoders, (piece.fresh for piece in window.pieces))
        return encoder

    def encode(self, window: Window) -> Dataset:
        """The training rows of a window."""
        assert self._fields is not None
        with closing(self.read(window)) as encoder:
            return encoder.encode(self._fields, self._threshold, None)[0]
