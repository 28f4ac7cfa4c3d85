"""Approximate search among more vectors than are compared one by one: an inverted file.

Faiss groups the vectors by the nearest of some hundreds or thousands of centres (spherical k-means) when the index is
made. A search compares a vector with the centres, and then exactly with the vectors of the nearest cells alone, which
needs no Faiss. What is stored are plain arrays, which can be checked; Faiss's own files are read by code that trusts
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt

import numpy as np
from jaxtyping import Float16, Float32, Int32, Int64
from numpy import ndarray

from seq2see.errors import MissingExtra, UserError, imported

EXTRA = "nearest"
PROBED = 1 / 8
"""The share of the vectors that a search looks at, cell by cell: at least so many."""
ROUNDS = 10
POINTS = 128
"""Rounds of k-means, and vectors for each centre that it is given."""
BLOCK = 65_536


def check_library(vectors: int, *, otherwise: str) -> None:
    """Refuse to group vectors without Faiss, before they are computed."""
    try:
        imported("faiss", extra=EXTRA)
    except MissingExtra as error:
        raise UserError(f"an index of {vectors:,} vectors is made with Faiss. {error}; or {otherwise}") from None


@dataclass
class Cells:
    """Vectors by the nearest centre. centres: (cells, size), unit vectors; cell_of: (vectors,), the cell of each."""

    centres: Float16[ndarray, "cells size"]
    cell_of: Int32[ndarray, " vectors"]
    _members: Int64[ndarray, " vectors"] = field(init=False, repr=False)
    _bounds: Int64[ndarray, " bounds"] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.cell_of) and not 0 <= self.cell_of.min() <= self.cell_of.max() < len(self.centres):
            raise ValueError(f"cells are not those of {len(self.centres):,} centres")
        counts = np.bincount(self.cell_of, minlength=len(self.centres))
        self._members = np.argsort(self.cell_of, kind="stable")
        self._bounds = np.concatenate([[0], np.cumsum(counts)])

    @classmethod
    def of(cls, vectors: Float16[ndarray, "vectors size"]) -> Cells:
        """Group unit vectors into about as many cells as a cell has vectors."""
        faiss = imported("faiss", extra=EXTRA)
        count, size = vectors.shape
        cells = isqrt(count)
        sample = vectors[np.arange(min(count, POINTS * cells)) * count // min(count, POINTS * cells)]
        means = faiss.Kmeans(
            size, cells, niter=ROUNDS, seed=1, spherical=True, min_points_per_centroid=1, max_points_per_centroid=POINTS
        )
        means.train(sample.astype(np.float32))
        centres = means.centroids.astype(np.float16)
        lookup = faiss.IndexFlatIP(size)
        lookup.add(centres.astype(np.float32))
        cell_of = np.empty(count, dtype=np.int32)
        for start in range(0, count, BLOCK):
            _, nearest = lookup.search(vectors[start : start + BLOCK].astype(np.float32), 1)
            cell_of[start : start + BLOCK] = nearest[:, 0]
        return cls(centres, cell_of)

    def near(self, unit: Float32[ndarray, " size"]) -> Int64[ndarray, " candidates"]:
        """The places of the vectors in the cells nearest to a vector, in ascending order."""
        order = np.argsort(-(self.centres.astype(np.float32) @ unit), kind="stable")
        sizes = np.diff(self._bounds)[order]
        enough = int(np.searchsorted(sizes.cumsum(), len(self.cell_of) * PROBED)) + 1
        parts = [self._members[self._bounds[cell] : self._bounds[cell + 1]] for cell in order[:enough].tolist()]
        return np.sort(np.concatenate(parts))
