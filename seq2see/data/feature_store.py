"""What a frozen network made of files, kept on disk: computed once, read a few at a time, whole after any crash."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from seq2see.data.output import unwritable

Array = NDArray[np.float16]


class FeatureStore:
    """Arrays of one shape by file, in half precision: `features.bin`, and `index.jsonl` which says whose each is.

    A line of the index is written behind the array it speaks of, so that whatever stops a run leaves the beginning of
    a good store: what the index does not tell of is overwritten. A file that has changed since (its size or time) is
    not known any more.
    """

    def __init__(self, folder: Path, shape: Sequence[int]):
        self.folder, self.shape = folder, tuple(shape)
        self._bytes = int(np.prod(self.shape)) * np.dtype(np.float16).itemsize
        self._rows: dict[str, int] = {}
        self._known: dict[str, bool] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._features = self._opened("features.bin")
            self._index = self._opened("index.jsonl")
        except OSError as error:
            raise unwritable(folder, error) from None
        self._recover()

    def __contains__(self, path: str) -> bool:
        if path not in self._known:
            identity = _identity(path)
            self._known[path] = identity is not None and identity in self._rows
        return self._known[path]

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, paths: Sequence[str]) -> Array:
        """(files, *shape); only these are read from disk."""
        found = np.empty((len(paths), *self.shape), dtype=np.float16)
        for number, path in enumerate(paths):
            row = self._rows[_identity(path) or ""]
            data = os.pread(self._features.fileno(), self._bytes, row * self._bytes)
            found[number] = np.frombuffer(data, dtype=np.float16).reshape(self.shape)
        return found

    def add(self, paths: Iterable[str], features: Array) -> None:
        """Keep the arrays of some more files: features (files, *shape)."""
        lines = []
        try:
            for path, one in zip(paths, features, strict=True):
                identity = _identity(path)
                if identity is None:
                    continue
                row = self._rows.setdefault(identity, len(self._rows))
                os.pwrite(
                    self._features.fileno(), np.ascontiguousarray(one, dtype=np.float16).tobytes(), row * self._bytes
                )
                lines.append(json.dumps(identity) + "\n")
                self._known[path] = True
            os.fsync(self._features.fileno())
            self._index.seek(0, os.SEEK_END)
            self._index.write("".join(lines).encode())
            self._index.flush()
        except OSError as error:
            raise unwritable(self.folder, error) from None

    def close(self) -> None:
        self._features.close()
        self._index.close()

    def _opened(self, name: str) -> BinaryIO:
        path = self.folder / name
        return path.open("r+b" if path.exists() else "w+b")

    def _recover(self) -> None:
        """Take the index as far as it is whole and its arrays are there."""
        whole = self._features.seek(0, os.SEEK_END) // self._bytes
        good = 0
        self._index.seek(0)
        for line in self._index:
            if not line.endswith(b"\n") or len(self._rows) >= whole:
                break
            try:
                self._rows.setdefault(str(json.loads(line)), len(self._rows))
            except ValueError:
                break
            good += len(line)
        self._index.truncate(good)


def _identity(path: str) -> str | None:
    """A file as it is now: where it lies, how large it is and when it was last written; None where there is none."""
    try:
        found = Path(path).resolve().stat()
    except OSError:
        return None
    return f"{Path(path).resolve()}|{found.st_size}|{found.st_mtime_ns}"
