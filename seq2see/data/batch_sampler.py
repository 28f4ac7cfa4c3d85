"""Which rows meet in a batch: rows of like length, differently in every epoch, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
POOL_BATCHES = 100


class BatchPlan:
    """Batches under a budget of symbols, padding included: rows x (longest of one column + longest of the next + ...).

    widths: (rows, columns), symbols of each row by column, the output last. A row above the budget is a batch alone.
    A place in the plan is (epoch, index of the batch): with the seed, and nothing else, it decides on the rows.
    """

    def __init__(self, widths: NDArray[np.integer], *, batch_tokens: int, batch_rows: int, seed: int = 1):
        self.widths = np.asarray(widths, dtype=np.int64)
        self.batch_tokens = batch_tokens
        self.batch_rows = batch_rows
        self.seed = seed
        mean = max(float(self.widths.sum(1).mean()), 1.0) if len(self.widths) else 1.0
        self._rows_per_batch = max(min(batch_rows, batch_tokens / mean), 1.0)
        self._latest: tuple[int, list[Rows]] | None = None

    def epoch(self, number: int) -> list[Rows]:
        """All rows, once each, as batches in random order.

        Rows are shuffled, parted into pools of about a hundred batches and sorted by length within their pool, so that
        batches differ from epoch to epoch even where no two rows are of the same length.
        """
        if self._latest is None or self._latest[0] != number:
            random = np.random.default_rng([abs(self.seed), int(self.seed < 0), number])
            rows = random.permutation(len(self.widths))
            pool = int(self._rows_per_batch * POOL_BATCHES)
            batches = [
                batch for i in range(0, len(rows), pool) for batch in self._cut(self._sorted(rows[i : i + pool]))
            ]
            self._latest = number, [batches[i] for i in random.permutation(len(batches))]
        return self._latest[1]

    def by_length(self) -> list[Rows]:
        """All rows, once each, longest first and nothing random: for evaluation, where memory lacks early or never."""
        return self._cut(self._sorted(np.arange(len(self.widths))))[::-1]

    def _sorted(self, rows: Rows, column: int = 0, *, falling: bool = False) -> Rows:
        """Rows of like lengths side by side; ties keep the random order they come in.

        One input: by its length, then the output's. Several: by the length of the first, in strips of equal size, each
        sorted by what is left. Neighbouring runs rise and fall in turn, so that rows stay alike from one to the next.
        """
        widths = self.widths[rows]
        inputs = self.widths.shape[1] - 1 - column
        first = -widths[:, column] if falling else widths[:, column]
        if inputs < 1:
            return rows[np.argsort(first, kind="stable")]
        if inputs == 1:
            output = widths[:, -1]
            return rows[np.lexsort((np.where(first % 2, -output, output), first))]
        rows = rows[np.argsort(first, kind="stable")]
        strips = max(round((len(rows) / self._rows_per_batch) ** (1 / inputs)), 1)
        parts = np.array_split(rows, strips)
        return np.concatenate([self._sorted(part, column + 1, falling=bool(i % 2)) for i, part in enumerate(parts)])

    def _cut(self, rows: Rows) -> list[Rows]:
        """Neighbours into batches, each as large as the budget allows."""
        if not len(rows):
            return []
        cuts = [0]
        longest = [0] * self.widths.shape[1]
        for i, widths in enumerate(self.widths[rows].tolist()):
            longest = [max(pair) for pair in zip(longest, widths, strict=True)]
            size = i - cuts[-1] + 1
            if size > 1 and (size > self.batch_rows or size * sum(longest) > self.batch_tokens):
                cuts.append(i)
                longest = widths
        return [rows[first:last] for first, last in pairwise([*cuts, len(rows)])]
