"""Do two ways of weighing the same places put them in the same order?"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def kendall_tau(one: Float[np.ndarray, " places"], other: Float[np.ndarray, " places"]) -> float:
    """Kendall's tau-b: the share of pairs of places in the same order, less that in the opposite one; ties have none.

    1: the same order, -1: the opposite one, 0: no more alike than chance; NaN where either knows no order at all.

    >>> kendall_tau(np.array([0.1, 0.2, 0.7]), np.array([1.0, 3.0, 2.0]))
    0.333
    """
    upper = np.triu_indices(len(one), k=1)
    first, second = (np.sign(np.subtract.outer(values, values))[upper] for values in (one, other))
    ordered = np.sqrt(np.sum(first != 0) * np.sum(second != 0))
    return float(np.sum(first * second) / ordered) if ordered else float("nan")


def same_top(one: Float[np.ndarray, " places"], other: Float[np.ndarray, " places"]) -> float:
    """Whether the largest of one is the largest of the other; of several that are equal each is one drawn at random.

    >>> same_top(np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 0.0]))
    0.5
    """
    first, second = (values == values.max() for values in (one, other))
    return float(np.sum(first & second) / (np.sum(first) * np.sum(second)))
