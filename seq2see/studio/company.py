"""How long a question waits for others: as long as they keep coming, and not at all where one client asks alone."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

LULL = 0.01
"""Seconds without a new question after which those that are there go."""
SHARE = 0.5
"""At most this share of the seconds that the batch before took is waited."""


class Company:
    """Learns from each batch whether waiting is worth it.

    Clients that were answered together ask again together, one after the other within milliseconds. Whoever began with
    the first of them would leave the others to a batch of their own, and small batches cost nearly as much as large
    ones.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter):
        self._clock = clock
        self._rows, self._seconds = 0, 0.0
        self._wanted, self._until = 0, 0.0

    def answered(self, rows: int, seconds: float) -> None:
        """A batch of so many rows took so long."""
        self._rows, self._seconds = rows, seconds

    def begin(self, waiting: int) -> None:
        """The next batch may begin, with so many questions; those who were answered just now may ask again."""
        self._wanted = waiting + self._rows if self._rows > 1 else 0
        self._until = self._clock() + SHARE * self._seconds

    def wait(self, waiting: int) -> float:
        """Seconds to wait for one more question where so many are there; 0: go."""
        if waiting >= self._wanted:
            return 0.0
        return max(min(self._until - self._clock(), LULL), 0.0)
