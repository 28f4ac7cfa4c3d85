"""Normalisation over groups of maps."""

from __future__ import annotations


def groups_of(maps: int) -> int:
    """Groups that so many maps are normalised in: eight, or as many as divide them.

    >>> groups_of(32), groups_of(6)
    (8, 2)
    """
    return next(number for number in (8, 4, 2, 1) if maps % number == 0)
