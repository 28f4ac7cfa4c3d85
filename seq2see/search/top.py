"""The likeliest symbols of each row, without sorting a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy import ndarray

DEEP = 16
"""How many symbols share a column of the table of maxima, see `likeliest`."""
FEW = 128
"""Symbols that are sorted at once, which is faster than any choice among them."""


@dataclass
class Likeliest:
    """ids, log_probs: (rows, number), the likeliest symbols of each row, best first."""

    ids: Int[ndarray, "rows number"]
    log_probs: Float[ndarray, "rows number"]

    def first(self, number: int) -> Likeliest:
        return Likeliest(self.ids[:, :number], self.log_probs[:, :number])

    def without(self, symbols: Sequence[int]) -> Float[ndarray, "rows number"]:
        """Their log-probabilities, minus infinity at these symbols."""
        rest = self.log_probs.copy()
        for symbol in symbols:
            rest[self.ids == symbol] = -np.inf
        return rest


def likeliest(log_probs: Float[ndarray, "rows symbols"], number: int) -> Likeliest:
    """The likeliest symbols of each row.

    The symbols are written line by line into a table of 16 lines. The `number` largest are in the columns with the
    `number` largest maxima, which are much fewer than the symbols.

    >>> likeliest(np.log(np.array([[0.1, 0.6, 0.3]])), 2).ids
    array([[1, 2]])
    """
    rows, symbols = log_probs.shape
    number = min(number, symbols)
    columns = symbols // DEEP
    if symbols <= FEW:
        order = np.argsort(-log_probs, axis=1, kind="stable")[:, :number]
        return Likeliest(order, pick(log_probs, order))
    if not number or columns <= 2 * number:
        return _sorted(np.broadcast_to(np.arange(symbols), log_probs.shape), log_probs, number)
    table = log_probs[:, : columns * DEEP].reshape(rows, DEEP, columns)
    rest = log_probs[:, columns * DEEP :]
    best = _largest(table.max(axis=1), number)
    ids = (best[:, :, None] + columns * np.arange(DEEP)).reshape(rows, -1)
    if rest.shape[1]:
        ids = np.concatenate([ids, np.broadcast_to(np.arange(columns * DEEP, symbols), rest.shape)], axis=1)
    return _sorted(ids, pick(log_probs, ids), number)


def _sorted(ids: ndarray, values: ndarray, number: int) -> Likeliest:
    """The largest of these values, best first."""
    chosen = _largest(values, number)
    return best_first(pick(ids, chosen), pick(values, chosen))


def best_first(ids: Int[ndarray, "rows number"], log_probs: Float[ndarray, "rows number"]) -> Likeliest:
    """The same in order; of equal ones that with the lower id first."""
    if (log_probs[:, 1:] < log_probs[:, :-1]).all():
        return Likeliest(ids, log_probs)
    order = np.lexsort((ids, -log_probs), axis=1)
    return Likeliest(pick(ids, order), pick(log_probs, order))


def pick(values: Shaped[ndarray, "rows _"], columns: Int[ndarray, "rows chosen"]) -> Shaped[ndarray, "rows chosen"]:
    """These columns of each row: what `np.take_along_axis` gives, at a fraction of its cost for small arrays."""
    chosen: ndarray = values[np.arange(len(values))[:, None], columns]
    return chosen


def _largest(values: Float[ndarray, "rows _"], number: int) -> Int[ndarray, "rows number"]:
    """The columns of the largest values of each row, in any order."""
    if number >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(values, -number, axis=1)[:, values.shape[1] - number :]
