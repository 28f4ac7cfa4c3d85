"""Rows cut into batches for prediction: rows of like length together, answers back in the order of the questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from seq2see.data.batches import Batch
from seq2see.data.fields import Fields

BATCH_TOKENS = 4000
BATCH_ROWS = 256

Told = Callable[[int, int], None]
"""Told how many are done, of how many."""


def chunks(
    fields: Fields,
    rows: Sequence[Mapping[str, str]],
    *,
    target: bool = False,
    factor: int = 1,
    told: Told | None = None,
) -> Iterator[tuple[list[int], Batch]]:
    """(numbers of the rows, their batch), longest first; factor: hypotheses per row (beam), which share the budget."""
    lengths = [sum(field.room(row[name]) for name, field in fields.inputs.items()) + 1 for row in rows]
    order = sorted(range(len(rows)), key=lambda number: -lengths[number])
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        size = max(1, min(BATCH_ROWS, BATCH_TOKENS // max(longest, 1) // max(factor // 2, 1)))
        numbers = order[start : start + size]
        yield numbers, fields.batch([rows[number] for number in numbers], target=target)
        start += size
        if told is not None:
            told(min(start, len(order)), len(order))
