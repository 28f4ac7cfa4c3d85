"""Vectors of inputs: nearest neighbours, and a map in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch.nn.functional import normalize

from seq2see.errors import UserError
from seq2see.evaluation.pca import Pca

BLOCK_ROWS = 1024
"""Rows compared with all others at once, so that memory does not grow with the square of their number."""


def nearest_others(vectors: Sequence[Sequence[float]], k: int) -> list[list[tuple[int, float]]]:
    """The k nearest neighbours of each vector by cosine, as (index, cosine), nearest first.

    >>> nearest_others([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 1)
    [[(2, 0.70711)], [(2, 0.70711)], [(0, 0.70711)]]
    """
    if k < 1:
        raise UserError(f"neighbours must be at least 1, got {k}")
    if len(vectors) < 2:
        raise UserError("neighbours are looked for among the inputs given: give at least two")
    unit = normalize(torch.tensor(vectors, dtype=torch.float64), dim=-1)
    neighbours: list[list[tuple[int, float]]] = []
    for start in range(0, len(unit), BLOCK_ROWS):
        cosines = unit[start : start + BLOCK_ROWS] @ unit.T
        rows = torch.arange(len(cosines))
        cosines[rows, start + rows] = -torch.inf
        best = cosines.topk(min(k, len(unit) - 1), dim=1)
        for numbers, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            neighbours.append(list(zip(numbers, values, strict=True)))
    return neighbours


@dataclass(frozen=True)
class VectorMap:
    """A map of vectors in two dimensions.

    points (inputs, 2); shares of the variance that each axis explains; neighbours: the nearest neighbours of each input
    by the cosine of the whole vectors, as (index, cosine), which may differ from those on the map.
    """

    points: Float[np.ndarray, "inputs 2"]
    shares: tuple[float, float]
    neighbours: list[list[tuple[int, float]]]


def vector_map(vectors: Sequence[Sequence[float]], *, neighbours: int = 0) -> VectorMap:
    """The map of at least three vectors by PCA; neighbours: how many nearest ones of each to find (0: none)."""
    if len(vectors) < 3:
        raise UserError(f"a map needs three different inputs or more, got {len(vectors)}")
    rows = np.asarray(vectors, dtype=np.float64)
    pca = Pca.fit(rows)
    first, second = [*pca.shares.tolist(), 0.0][:2]
    near = nearest_others(vectors, neighbours) if neighbours else [[] for _ in vectors]
    return VectorMap(pca.transform(rows, 2), (first, second), near)
