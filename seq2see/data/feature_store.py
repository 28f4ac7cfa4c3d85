"""Features of files that a frozen network computed, kept on disk: computed once, valid after any crash."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seq2see.files import unwritable
from seq2see.locking import lock_folder

Array = NDArray[np.float16]


class FeatureStore:
    """Arrays of one shape by file, in half precision: `features.bin`, and `index.jsonl` with the file of each array.

    A line of the index is written after its array, so a run that is stopped leaves a valid store: arrays without a line
    are overwritten. Runs that share a store append to it in turn. A file whose size or time has changed counts as a new
    one.
    """

    def __init__(self, folder: Path, shape: Sequence[int]):
        self.folder, self.shape = folder, tuple(shape)
        self._features, self._index = folder / "features.bin", folder / "index.jsonl"
        self._bytes = int(np.prod(self.shape)) * np.dtype(np.float16).itemsize
        self._rows: dict[str, int] = {}
        self._taken = 0
        self._known: dict[str, bool] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with lock_folder(folder, wait=True):
                self._recover()
        except OSError as error:
            raise unwritable(folder, error) from None

    def __contains__(self, path: str) -> bool:
        if path not in self._known:
            identity = _identity(path)
            self._known[path] = identity is not None and identity in self._rows
        return self._known[path]

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, paths: Sequence[str]) -> Array:
        """(files, *shape); only these are read from disk."""
        features = np.empty((len(paths), *self.shape), dtype=np.float16)
        with self._features.open("rb") as file:
            for number, path in enumerate(paths):
                file.seek(self._rows[_identity(path) or ""] * self._bytes)
                features[number] = np.frombuffer(file.read(self._bytes), dtype=np.float16).reshape(self.shape)
        return features

    def add(self, paths: Iterable[str], features: Array) -> None:
        """Add the arrays of more files: features (files, *shape). What other runs have added in the meantime stays."""
        try:
            with lock_folder(self.folder, wait=True):
                self._recover()
                self._append(paths, features)
        except OSError as error:
            raise unwritable(self.folder, error) from None

    def _append(self, paths: Iterable[str], features: Array) -> None:
        new: dict[str, Array] = {}
        for path, array in zip(paths, features, strict=True):
            identity = _identity(path)
            if identity is None:
                continue
            self._known[path] = True
            if identity not in self._rows:
                new[identity] = array
        with self._features.open("r+b") as file:
            file.seek(len(self._rows) * self._bytes)
            file.write(b"".join(np.ascontiguousarray(array, dtype=np.float16).tobytes() for array in new.values()))
            file.flush()
            os.fsync(file.fileno())
        lines = "".join(f"{json.dumps(identity)}\n" for identity in new).encode()
        with self._index.open("ab") as file:
            file.write(lines)
        self._rows |= {identity: len(self._rows) + number for number, identity in enumerate(new)}
        self._taken += len(lines)

    def _recover(self) -> None:
        """Read the index from where it was last read, as far as its lines and their arrays are complete; cut off the
        rest."""
        self._features.touch()
        self._index.touch()
        whole = self._features.stat().st_size // self._bytes
        if self._index.stat().st_size < self._taken:
            self._rows, self._known, self._taken = {}, {}, 0
        with self._index.open("rb") as file:
            file.seek(self._taken)
            for line in file:
                identity = _parse_line(line)
                if identity is None or identity in self._rows or len(self._rows) >= whole:
                    break
                self._rows[identity] = len(self._rows)
                self._taken += len(line)
        if self._taken < self._index.stat().st_size:
            os.truncate(self._index, self._taken)


def _parse_line(line: bytes) -> str | None:
    """The identity of a file in a line of the index; None where the line is not complete."""
    try:
        return str(json.loads(line)) if line.endswith(b"\n") else None
    except ValueError:
        return None


def _identity(path: str) -> str | None:
    """A file as it is now: its path, size and time of the last change; None where there is none."""
    try:
        status = Path(path).resolve().stat()
    except OSError:
        return None
    return f"{Path(path).resolve()}|{status.st_size}|{status.st_mtime_ns}"
