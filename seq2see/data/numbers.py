"""Rows of numbers as text: read with care, written so that they can be read again."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import UserError, counted

LARGEST = float(np.finfo(np.float32).max)


def parsed(text: str) -> NDArray[np.float64]:
    """The numbers of a text, which stand between spaces or commas, in brackets or not.

    >>> parsed("[1, -2.5 3e2]").tolist()
    [1.0, -2.5, 300.0]
    """
    words = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    if not words:
        raise UserError("there is no number")
    return np.array([_number(word, place) for place, word in enumerate(words, start=1)])


def _number(word: str, place: int) -> float:
    try:
        number = float(word)
    except ValueError:
        raise UserError(f"number {place} is '{word}', which is no number") from None
    if not math.isfinite(number) or abs(number) > LARGEST:
        raise UserError(f"number {place} is {word}; allowed: from {-LARGEST:.1e} to {LARGEST:.1e}")
    return number


def as_many(numbers: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The same numbers, where there are as many as there have to be."""
    if len(numbers) != size:
        raise UserError(f"{counted(len(numbers), 'number')}, and every row has {size:,}")
    return numbers


def written(numbers: Iterable[float]) -> str:
    """Numbers as text, with spaces between them.

    >>> written([1.0, 0.25])
    '1 0.25'
    """
    return " ".join(f"{number:.7g}" for number in numbers)
