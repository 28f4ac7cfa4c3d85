"""Stored ids: rows of different lengths in memory or memory-mapped from disk."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import Sequences, pad
from seq2see.files import unwritable

_FLUSH = 1 << 18


class Ragged:
    """Rows stored one after the other.

    flat: (symbols,) int32; offsets: (rows + 1,) int64; row i is flat[offsets[i] : offsets[i + 1]].
    """

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
        """The selected rows as a padded batch."""
        selected = np.asarray(rows, dtype=np.int64)
        starts = np.asarray(self.offsets[selected])
        return pad(self.flat, starts, np.asarray(self.offsets[selected + 1]) - starts, eos=eos)

    @classmethod
    def open(cls, path: Path) -> Ragged:
        """Map what a RaggedWriter wrote under this path (`path.ids`, `path.offsets`)."""
        ids, offsets = _files(path)
        flat = np.memmap(ids, dtype=np.int32, mode="r") if ids.stat().st_size else np.empty(0, dtype=np.int32)
        return cls(flat, np.memmap(offsets, dtype=np.int64, mode="r"))


class RaggedWriter:
    """Writes rows one at a time; with a path, only a buffer is held in memory."""

    def __init__(self, path: Path | None = None):
        self._path = path
        self._flat = array("i")
        self._offsets = array("q", [0])
        self._end = 0
        self._open: tuple[BinaryIO, BinaryIO] | None = None
        if path is not None:
            with _writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                ids, offsets = _files(path)
                self._open = ids.open("wb"), offsets.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; unfinished ones are useless."""
        for file in self._open or ():
            with suppress(OSError):
                file.close()

    def append(self, row: Sequence[int]) -> None:
        self._flat.extend(row)
        self._end += len(row)
        self._offsets.append(self._end)
        if self._open is not None and len(self._flat) + len(self._offsets) > _FLUSH:
            self._flush(self._open)

    def _flush(self, files: tuple[BinaryIO, BinaryIO]) -> None:
        for file, buffer in zip(files, (self._flat, self._offsets), strict=True):
            with _writing(Path(file.name), closing=files):
                buffer.tofile(file)
            del buffer[:]

    def finish(self) -> Ragged:
        """Close the files and return the rows."""
        if self._open is None or self._path is None:
            return Ragged(np.array(self._flat, dtype=np.int32), np.array(self._offsets, dtype=np.int64))
        self._flush(self._open)
        for file in self._open:
            with _writing(Path(file.name), closing=self._open):
                file.close()
        return Ragged.open(self._path)


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.ids"), path.with_name(f"{path.name}.offsets")


@contextmanager
def _writing(path: Path, *, closing: Sequence[BinaryIO] = ()) -> Iterator[None]:
    """Turn errors of writing a file into UserErrors."""
    try:
        yield
    except OSError as error:
        for file in closing:
            with suppress(OSError):
                file.close()
        raise unwritable(path, error) from None
