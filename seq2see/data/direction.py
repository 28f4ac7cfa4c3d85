"""Which way a script runs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LEFTWARD = ("R", "AL")
"""Unicode's classes of letters that are written from right to left: Hebrew and others, Arabic."""


def leftward(symbols: Iterable[tuple[str, int]]) -> bool:
    """Whether most letters of symbols, each with how often it occurs, are written from right to left.

    Digits and marks have no say in it: they stand in texts of both kinds.

    >>> leftward([("\u05d0", 3), ("a", 2), ("7", 9)]), leftward([("ab", 1), ("\u0627", 1)])
    (True, False)
    """
    total = 0
    for symbol, times in symbols:
        kinds = [unicodedata.bidirectional(character) for character in symbol]
        total += times * (sum(kind in LEFTWARD for kind in kinds) - kinds.count("L"))
    return total > 0
