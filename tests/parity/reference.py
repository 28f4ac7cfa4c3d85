"""Attention once more in NumPy: plain loops over all places, in double precision, from the equations alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]


def array(x: Tensor) -> Array:
    return x.detach().double().numpy()


def softmax(energies: Array) -> Array:
    powers = np.exp(energies - energies.max())
    return powers / powers.sum()


@dataclass
class Window:
    """The places within `reach` of a position, with the logarithm of a Gaussian of the distance for each.

    position: along each axis that has a window: (place,), (column,) or (row, column).
    """

    position: Array
    reach: int
    gaussian: bool = True

    def bias(self, place: tuple[int, ...], extent: tuple[int, ...]) -> float:
        """What is added to the energy of a place (a number in a line, or row and column); minus infinity: too far."""
        there = place[len(place) - len(self.position) :]
        size = extent[len(extent) - len(self.position) :]
        squares = 0.0
        for p, at, length in zip(self.position, there, size, strict=True):
            middle = min(max(int(np.round(p)), 0), max(length - 1, 0))
            if abs(at - middle) > self.reach:
                return -np.inf
            squares += (at - p) ** 2
        return -squares / (2 * (self.reach / 2) ** 2) if self.gaussian else 0.0


def looked(
    energies: Array, values: Array, real: list[bool], where: list[tuple[int, ...]], window: Window
) -> tuple[Array, Array]:
    """Weights and context of one query: softmax over the real places inside the window."""
    extent = tuple(
        len({at[axis] for at, there in zip(where, real, strict=True) if there}) for axis in range(len(where[0]))
    )
    biased = np.full(len(real), -np.inf)
    for j, there in enumerate(real):
        if there:
            biased[j] = energies[j] + window.bias(where[j], extent)
    weights = softmax(biased) if np.isfinite(biased).any() else np.zeros(len(real))
    return weights, sum((weights[j] * values[j] for j in range(len(real))), np.zeros(values.shape[1]))
