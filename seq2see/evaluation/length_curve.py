"""Models on the same rows, by the length of the inputs: each with its interval, and how sure their difference is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seq2see.errors import UserError
from seq2see.evaluation.base import RowMetric, Rows
from seq2see.evaluation.bootstrap import Comparison, metric_interval, paired_bootstrap
from seq2see.evaluation.by_length import check_edges, equal_count_edges, input_lengths
from seq2see.evaluation.metrics import lookup, measure


@dataclass(frozen=True)
class LengthPoint:
    """One model on the rows whose inputs have `shortest` to `longest` symbols.

    low, high: the 95 % interval over rows drawn anew, where the metric is a sum over rows; against: the first model on
    the same rows beside this one, where there are several.
    """

    model: str
    shortest: int
    longest: int
    mean_length: float
    rows: int
    value: float
    low: float | None = None
    high: float | None = None
    against: Comparison | None = None

    def to_dict(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in LengthPoint.__dataclass_fields__ if name != "against"}
        if self.against is None:
            return told
        found = self.against.difference
        return (
            told
            | {"ahead": -found.value, "ahead_low": -found.high, "ahead_high": -found.low}
            | {"p_value": self.against.p_value}
        )


def length_curves(
    metric: str, models: Mapping[str, Rows], *, bins: int = 6, edges: Sequence[int] | None = None
) -> list[LengthPoint]:
    """For each model its points from short to long; the first model's inputs say how long they are.

    edges: the first length of each bin but the first, in place of `bins` of about equally many rows.
    """
    first = next(iter(models.values()))
    for name, rows in models.items():
        if rows.references != first.references:
            raise UserError(f"the models answer other rows: those of '{name}' have other inputs or outputs")
    lengths = input_lengths(first)
    starts = equal_count_edges(lengths, bins) if edges is None else check_edges(edges)
    held: list[list[int]] = [[] for _ in range(len(starts) + 1)]
    for row, length in enumerate(lengths):
        held[bisect_right(starts, length)].append(row)
    return [
        _point(metric, name, rows, None if rows is first else first, {row: lengths[row] for row in chosen})
        for name, rows in models.items()
        for chosen in held
        if chosen
    ]


def _point(metric: str, name: str, rows: Rows, first: Rows | None, lengths: dict[int, int]) -> LengthPoint:
    """lengths: of the inputs of those rows that are meant."""
    chosen, found = list(lengths), list(lengths.values())
    where: dict[str, Any] = {
        "model": name,
        "shortest": min(found),
        "longest": max(found),
        "mean_length": sum(found) / len(found),
        "rows": len(found),
    }
    rows = rows.select(chosen)
    if not isinstance(lookup(metric), RowMetric):
        return LengthPoint(**where, value=measure([metric], rows)[metric])
    interval = metric_interval(metric, rows)
    against = None if first is None else paired_bootstrap(metric, first.select(chosen), rows)
    return LengthPoint(**where, value=interval.value, low=interval.low, high=interval.high, against=against)
