"""The output layer of a model that was exported with a shortlist: all of its rows, or those that suit some inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy import ndarray

from seq2see.errors import UserError
from seq2see_runtime.readers import Column, file_of

LAYER = ("output/weights", "output/bias", "output/scales")
"""Inputs of the graph of a step; scales where weights have 8 bits."""
MAGIC = b"\x93NUMPY"
"""The first bytes of a file of one array."""
TINY = np.finfo(np.float32).tiny


class OutputLayer:
    """V and c of all symbols, and which of them an input needs.

    arrays: by the names of the graph's inputs; V is (symbols, width), or with int8 (width, symbols) with scales.
    sizes: of the vocabularies of the text inputs, each of which has a list of symbols for each of its own; frequent:
    symbols that every input needs.
    """

    def __init__(self, folder: Path, sizes: Mapping[str, int], symbols: int, *, int8: bool):
        self.int8, self.count = int8, symbols
        weights = (np.int8, (None, symbols)) if int8 else (np.float32, (symbols, None))
        kinds = [weights, *[(np.float32, (symbols,))] * (2 if int8 else 1)]
        files = {name: folder / f"{name.replace('/', '_')}.npy" for name in LAYER}
        self.arrays = {name: _array(files[name], *kind) for name, kind in zip(LAYER, kinds, strict=False)}
        self.frequent = _ids(folder / "frequent.npy", (None,), symbols)
        paths = {name: file_of(folder, "shortlist", name, ".npy") for name in sizes}
        self.lists = {name: _ids(path, (sizes[name], None), symbols) for name, path in paths.items()}

    def symbols(self, columns: Mapping[str, Column], rows: int) -> tuple[ndarray, ndarray]:
        """(ids that some input of the batch needs, in ascending order; (rows, ids), whether each input needs them)."""
        needed = np.zeros((rows, self.count + 1), dtype=bool)  # the last for -1, which fills up short lists
        needed[:, self.frequent] = True
        for name, lists in self.lists.items():
            arrays = columns[name].arrays
            for row in range(rows):
                needed[row, lists[np.unique(arrays["ids"][row][arrays["mask"][row]])]] = True
        needed = needed[:, :-1]
        ids = np.flatnonzero(needed.any(0))
        return ids, needed[:, ids]

    def rows(self, symbols: ndarray | None) -> dict[str, ndarray]:
        """What belongs to these symbols, or to all, by the names of the graph's inputs."""
        if symbols is None:
            return self.arrays
        axes = {name: 1 if array.ndim == 2 and self.int8 else 0 for name, array in self.arrays.items()}
        return {name: np.take(array, symbols, axis=axes[name]) for name, array in self.arrays.items()}


def among(log_probs: ndarray, needed: ndarray) -> tuple[ndarray, ndarray]:
    """(log P, minus infinity where a symbol is not needed; (rows,), log of what the needed ones have together).

    log_probs: (rows, symbols); needed: (inputs, symbols), each input with as many rows. The difference of the two does
    not depend on which other symbols there are.
    """
    by_input = log_probs.reshape(len(needed), -1, log_probs.shape[1])
    mass = np.matmul(np.exp(by_input), needed.astype(log_probs.dtype)[:, :, None])
    kept = np.where(needed[:, None], by_input, -np.inf).reshape(log_probs.shape)
    return kept.astype(log_probs.dtype, copy=False), np.log(np.maximum(mass, TINY)).reshape(-1)


def _array(path: Path, kind: type, shape: tuple[int | None, ...]) -> ndarray:
    """An array of a file, which stays on disk until it is used."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("no array of NumPy")
        array: ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # noqa: BLE001 - a damaged header may raise anything
        raise UserError(f"{path}: damaged or missing: {error}") from None
    fits = array.ndim == len(shape) and all(want in (None, size) for size, want in zip(array.shape, shape, strict=True))
    if array.dtype != kind or not fits:
        raise UserError(f"{path}: damaged: {array.dtype} of {array.shape}; expected {np.dtype(kind)} of {shape}")
    return array


def _ids(path: Path, shape: tuple[int | None, ...], symbols: int) -> ndarray:
    ids = _array(path, np.int32, shape)
    if ids.size and not -1 <= ids.min() <= ids.max() < symbols:
        raise UserError(f"{path}: damaged: ids from {ids.min()} to {ids.max()}; allowed: -1 to {symbols - 1}")
    return ids
