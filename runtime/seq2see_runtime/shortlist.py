"""The output layer of a model that was exported with a shortlist: all of its rows, or those that suit some inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy import ndarray

from seq2see.errors import UserError
from seq2see_runtime.readers import Column, file_of


class OutputLayer:
    """V and c of all symbols, and which of them an input needs.

    arrays: by the names of the graph's inputs; V is (symbols, width), or with int8 (width, symbols) with scales.
    inputs: those that have a list of symbols for each of their own; frequent: symbols that every input needs.
    """

    def __init__(self, folder: Path, inputs: Sequence[str], symbols: int, *, int8: bool):
        self.int8, self.count = int8, symbols
        weights = (np.int8, (None, symbols)) if int8 else (np.float32, (symbols, None))
        kinds = {"weights": weights, "bias": (np.float32, (symbols,))}
        kinds |= {"scales": (np.float32, (symbols,))} if int8 else {}
        self.arrays = {f"output/{name}": _array(folder / f"output_{name}.npy", *kind) for name, kind in kinds.items()}
        self.frequent = _ids(folder / "frequent.npy", (None,), symbols)
        paths = {name: file_of(folder, "shortlist", name, ".npy") for name in inputs}
        self.lists = {name: _ids(path, (None, None), symbols) for name, path in paths.items() if path.is_file()}

    def symbols(self, columns: Mapping[str, Column]) -> ndarray:
        """The ids that some input of the batch needs, in ascending order."""
        needed = np.zeros(self.count + 1, dtype=bool)  # the last for -1, which fills up short lists
        needed[self.frequent] = True
        for name, lists in self.lists.items():
            arrays = columns[name].arrays
            needed[lists[np.unique(arrays["ids"][arrays["mask"]])]] = True
        return np.flatnonzero(needed[:-1])

    def rows(self, symbols: ndarray | None) -> dict[str, ndarray]:
        """What belongs to these symbols, or to all, by the names of the graph's inputs."""
        if symbols is None:
            return self.arrays
        axes = {name: 1 if array.ndim == 2 and self.int8 else 0 for name, array in self.arrays.items()}
        return {name: np.take(array, symbols, axis=axes[name]) for name, array in self.arrays.items()}


def _array(path: Path, kind: type, shape: tuple[int | None, ...]) -> ndarray:
    """An array of a file, which stays on disk until it is used."""
    try:
        found: ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: damaged or missing: {error}") from None
    fits = found.ndim == len(shape) and all(want in (None, size) for size, want in zip(found.shape, shape, strict=True))
    if found.dtype != kind or not fits:
        raise UserError(f"{path}: damaged: {found.dtype} of {found.shape}; expected {np.dtype(kind)} of {shape}")
    return found


def _ids(path: Path, shape: tuple[int | None, ...], symbols: int) -> ndarray:
    found = _array(path, np.int32, shape)
    if found.size and not -1 <= found.min() <= found.max() < symbols:
        raise UserError(f"{path}: damaged: ids from {found.min()} to {found.max()}; allowed: -1 to {symbols - 1}")
    return found
