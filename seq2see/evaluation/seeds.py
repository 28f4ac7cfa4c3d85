"""A metric over seeds: its mean, and how far another set of seeds might have moved it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seq2see.errors import UserError
from seq2see.evaluation.bootstrap import Interval

BISECTIONS = 200


def seeds_interval(values: Sequence[float], *, level: float = 0.95) -> Interval | None:
    """The mean with Student's interval, mean +- t s / sqrt(n): right for the few seeds one can afford.

    None where a single seed says nothing of the others.

    >>> made = seeds_interval([1.0, 2.0, 3.0])
    >>> round(made.low, 3), round(made.high, 3)
    (-0.484, 4.484)
    """
    if not values:
        raise UserError("there are no seeds to take the mean of")
    if len(values) < 2:
        return None
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    reach = student_quantile((1 + level) / 2, len(values) - 1) * float(array.std(ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - reach, mean + reach, level)


def student_quantile(share: float, freedom: int) -> float:
    """The t below which Student's distribution of that many degrees of freedom has this share (a half or more).

    >>> round(student_quantile(0.975, 2), 3)
    4.303
    """
    if not 0.5 <= share < 1 or freedom < 1:
        raise ValueError(f"share from 0.5 and below 1, freedom from 1; got {share} and {freedom}")
    low, high = 0.0, 1.0
    while _below(high, freedom) < share:
        high *= 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < share else (low, middle)
    return high


def _below(t: float, freedom: int) -> float:
    """P(T < t) for t >= 0: for whole degrees of freedom a finite sum of powers of the cosine of atan(t / sqrt(n))."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (power - 1) / power
    between = math.sin(angle) * total
    if odd:
        between = (2 / math.pi) * (angle + between)
    return 0.5 + between / 2
