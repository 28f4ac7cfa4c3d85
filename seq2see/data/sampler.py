"""Which rows meet in a batch: rows of like length, differently in every epoch, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
POOL_BATCHES = 100


class BatchPlan:
    """Batches under a budget of symbols, padding included: rows x (longest of column 1 + longest of column 2 + ...).

    widths: (rows, columns), symbols of each row by column, the output last. A row larger than the budget is a batch of its own.
    A place in the plan is (epoch, index of the batch): both decide on the rows, with the seed and nothing else.
    """

    def __init__(self, widths: NDArray[np.integer], *, batch_tokens: int, batch_rows: int, seed: int = 1):
        self.widths = np.asarray(widths, dtype=np.int64)
        if self.widths.ndim == 1:
            self.widths = self.widths[:, None]
        self.batch_tokens = batch_tokens
        self.batch_rows = batch_rows
        self.seed = seed
        self._last: tuple[int, list[Rows]] | None = None

    def epoch(self, number: int) -> list[Rows]:
        """All rows, once each, as batches in random order.

        Rows are shuffled, parted into pools of about a hundred batches, and sorted by length within a pool: batches differ
        from epoch to epoch even where no two rows have the same length.
        """
        if self._last is None or self._last[0] != number:
            random = np.random.default_rng([abs(self.seed), int(self.seed < 0), number])
            order = random.permutation(len(self.widths))
            pool = self._pool()
            pieces = [self._sorted(order[i : i + pool]) for i in range(0, len(order), pool)]
            batches = [batch for piece in pieces for batch in self._cut(piece)]
            self._last = number, [batches[i] for i in random.permutation(len(batches))]
        return self._last[1]

    def in_order_of_length(self) -> list[Rows]:
        """All rows, once each, longest first and nothing random: for evaluation, where memory runs out early or never."""
        return list(reversed(self._cut(self._sorted(np.arange(len(self.widths))))))

    def _pool(self) -> int:
        mean = max(float(self.widths.sum(1).mean()), 1.0) if len(self.widths) else 1.0
        return max(int(min(self.batch_rows, self.batch_tokens / mean) * POOL_BATCHES), 1)

    def _sorted(self, rows: Rows) -> Rows:
        """By length of the inputs, then of the output: rising and falling in turn, so that neighbours stay alike across the step.

        The sort is stable: ties keep the random order they come in.
        """
        widths = self.widths[rows]
        inputs = widths[:, :-1].sum(1)
        return rows[np.lexsort((np.where(inputs % 2, -widths[:, -1], widths[:, -1]), inputs))]

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
