"""Vectors laid flat: where each input lies in the two directions of largest variance, and which others are near it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError
from seq2see.evaluation.principal import Principal
from seq2see.pipeline.neighbours import nearest_others


@dataclass(frozen=True)
class VectorMap:
    """points (inputs, 2); shares of the variance that each axis holds; neighbours: for each input the nearest others
    by the cosine of the whole vectors, as (number, cosine): what is near on the map need not be near."""

    points: Float[np.ndarray, "inputs 2"]
    shares: tuple[float, float]
    neighbours: list[list[tuple[int, float]]]


def map_of(vectors: Sequence[Sequence[float]], *, neighbours: int = 0) -> VectorMap:
    """The map of at least three vectors; neighbours: how many of each are looked for (0: none)."""
    if len(vectors) < 3:
        raise UserError(f"a map needs three different inputs or more, got {len(vectors)}")
    rows = np.asarray(vectors, dtype=np.float64)
    found = Principal.of(rows)
    first, second = [*found.shares.tolist(), 0.0][:2]
    near = nearest_others(vectors, neighbours) if neighbours else [[] for _ in vectors]
    return VectorMap(found.code(rows, 2), (first, second), near)
