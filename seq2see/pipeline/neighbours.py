"""Which vectors lie in nearly the same direction."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import normalize

from seq2see.errors import UserError

ROWS = 1024
"""Rows compared with all others at once, so that memory grows with their number and not with its square."""


def nearest_others(vectors: Sequence[Sequence[float]], k: int) -> list[list[tuple[int, float]]]:
    """For each vector the k others of largest cosine, as (number, cosine), nearest first.

    >>> nearest_others([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 1)
    [[(2, 0.70711)], [(2, 0.70711)], [(0, 0.70711)]]
    """
    if k < 1:
        raise UserError(f"neighbours must be at least 1, got {k}")
    if len(vectors) < 2:
        raise UserError("neighbours are looked for among the inputs given: give at least two")
    unit = normalize(torch.tensor(vectors, dtype=torch.float64), dim=-1)
    found: list[list[tuple[int, float]]] = []
    for start in range(0, len(unit), ROWS):
        cosines = unit[start : start + ROWS] @ unit.T
        rows = torch.arange(len(cosines))
        cosines[rows, start + rows] = -torch.inf
        best = cosines.topk(min(k, len(unit) - 1), dim=1)
        for numbers, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            found.append(list(zip(numbers, values, strict=True)))
    return found
