"""Rows of ids of different lengths, in memory or mapped from disk, behind one interface."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import Sequences, pad

_FLUSH = 1 << 18


class Ragged:
    """Rows one behind the other. flat: (symbols,) int32; offsets: (rows + 1,) int64, row i is flat[offsets[i]:offsets[i + 1]]."""

    def __init__(self, flat: NDArray[np.int32], offsets: NDArray[np.int64]):
        self.flat = flat
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.flat[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Symbols of each row: (rows,)"""
        return np.diff(self.offsets)

    def pad(self, rows: Sequence[int] | NDArray[np.integer], *, eos: bool) -> Sequences:
        """The given rows as a padded batch."""
        chosen = np.asarray(rows, dtype=np.int64)
        starts = np.asarray(self.offsets[chosen])
        return pad(self.flat, starts, np.asarray(self.offsets[chosen + 1]) - starts, eos=eos)

    @classmethod
    def open(cls, path: Path) -> Ragged:
        """Map what a RaggedWriter left under this path (`path.ids`, `path.offsets`)."""
        return cls(
            _mapped(path.with_name(path.name + ".ids"), np.int32),
            _mapped(path.with_name(path.name + ".offsets"), np.int64),
        )


class RaggedWriter:
    """Takes rows one at a time and keeps little of them in memory where a path is given."""

    def __init__(self, path: Path | None = None):
        self._path = path
        self._flat = array("i")
        self._offsets = array("q", [0])
        self._end = 0
        self._files: tuple[BinaryIO, BinaryIO] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files = (
                path.with_name(path.name + ".ids").open("wb"),
                path.with_name(path.name + ".offsets").open("wb"),
            )

    def append(self, row: Sequence[int]) -> None:
        self._flat.extend(row)
        self._end += len(row)
        self._offsets.append(self._end)
        if self._files is not None and len(self._flat) + len(self._offsets) > _FLUSH:
            self._flush(self._files)

    def _flush(self, files: tuple[BinaryIO, BinaryIO]) -> None:
        for file, buffer in zip(files, (self._flat, self._offsets), strict=True):
            buffer.tofile(file)
            del buffer[:]

    def finish(self) -> Ragged:
        """Close the files, if there are any, and give the rows."""
        if self._files is None or self._path is None:
            return Ragged(np.array(self._flat, dtype=np.int32), np.array(self._offsets, dtype=np.int64))
        self._flush(self._files)
        for file in self._files:
            file.close()
        return Ragged.open(self._path)


def _mapped(path: Path, kind: type[np.int32] | type[np.int64]) -> NDArray[np.int32] | NDArray[np.int64]:
    """An array mapped from a file; an empty file cannot be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")
