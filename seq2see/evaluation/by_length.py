"""Quality against the length of the input (the information bottleneck), and recall of the input by position."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError
from seq2see.evaluation.bootstrap import Comparison, metric_interval, paired_bootstrap, ratio_intervals
from seq2see.evaluation.metrics import RowMetric, Rows, lookup, measure, symbols


@dataclass(frozen=True)
class LengthBin:
    """The metrics of the rows whose inputs have `shortest` to `longest` symbols."""

    shortest: int
    longest: int
    mean_length: float
    rows: int
    metrics: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def input_lengths(rows: Rows) -> list[int]:
    """The number of symbols of each input."""
    return [len(symbols(text, rows.input_unit or rows.unit)) for text in rows.need("inputs", "quality by length")]


def equal_count_edges(lengths: Sequence[int], bins: int) -> list[int]:
    """Edges of bins with about equally many rows. Rows of one length stay together, so there may be fewer bins.

    An edge is the first length of the next bin.

    >>> equal_count_edges([1, 1, 2, 5, 5, 9], 3)
    [2, 9]
    """
    if bins < 1:
        raise UserError(f"bins of lengths: {bins} given; allowed: 1 or more")
    edges: list[int] = []
    filled, left = 0, len(lengths)
    for length, rows in sorted(Counter(lengths).items()):
        share = left / (bins - len(edges))
        if filled and len(edges) < bins - 1 and share - filled < filled + rows - share:  # closer to it than if fuller
            edges.append(length)
            filled, left = 0, left - filled
        filled += rows
    return edges


def check_edges(edges: Sequence[int]) -> list[int]:
    """Refuse edges that do not rise."""
    if any(first >= second for first, second in pairwise(edges)):
        raise UserError(f"edges of lengths must rise: {list(edges)} given")
    return list(edges)


def quality_by_length(
    names: Sequence[str],
    rows: Rows,
    *,
    bins: int = 5,
    edges: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
) -> list[LengthBin]:
    """The metrics by input length, from short to long; bins without rows are left out.

    edges: the first length of each bin but the first ([10, 20]: up to 9, 10 to 19, 20 and more), in place of `bins`
    of about equally many rows; lengths: of the inputs, where they are not texts.
    """
    if lengths is None:
        lengths = input_lengths(rows)
    elif len(lengths) != len(rows):
        raise ValueError(f"{len(rows)} rows, but {len(lengths)} lengths")
    return [
        LengthBin(**_span(indices, lengths), metrics=measure(names, rows.select(indices)))
        for indices in _binned(lengths, bins, edges)
    ]


def _binned(lengths: Sequence[int], bins: int, edges: Sequence[int] | None) -> list[list[int]]:
    """The indices of the rows of each bin, without empty bins."""
    edges = equal_count_edges(lengths, bins) if edges is None else check_edges(edges)
    rows: list[list[int]] = [[] for _ in range(len(edges) + 1)]
    for row, length in enumerate(lengths):
        rows[bisect_right(edges, length)].append(row)
    return [indices for indices in rows if indices]


def _span(indices: Sequence[int], lengths: Sequence[int]) -> dict[str, Any]:
    """The lengths of some rows: shortest, longest, mean, and how many."""
    chosen = [lengths[row] for row in indices]
    return {
        "shortest": min(chosen),
        "longest": max(chosen),
        "mean_length": sum(chosen) / len(chosen),
        "rows": len(chosen),
    }


@dataclass(frozen=True)
class LengthPoint:
    """One model on the rows whose inputs have `shortest` to `longest` symbols.

    low, high: the 95 % bootstrap interval, where the metric is a sum over rows; against: the paired comparison of the
    first model with this one on the same rows, where there are several models.
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
        record = {name: getattr(self, name) for name in LengthPoint.__dataclass_fields__ if name != "against"}
        if self.against is None:
            return record
        difference = self.against.difference
        return (
            record
            | {"ahead": -difference.value, "ahead_low": -difference.high, "ahead_high": -difference.low}
            | {"p_value": self.against.p_value}
        )


def length_curves(
    metric: str, models: Mapping[str, Rows], *, bins: int = 6, edges: Sequence[int] | None = None
) -> list[LengthPoint]:
    """The points of each model from short to long inputs, by the lengths of the first model's inputs.

    edges: the first length of each bin but the first, in place of `bins` of about equally many rows.
    """
    first = next(iter(models.values()))
    for name, rows in models.items():
        if rows.references != first.references:
            raise UserError(f"the models were given different rows: those of '{name}' have other inputs or outputs")
    lengths = input_lengths(first)
    binned = _binned(lengths, bins, edges)
    return [
        _point(metric, rows.select(indices), None if rows is first else first.select(indices), name, indices, lengths)
        for name, rows in models.items()
        for indices in binned
    ]


def _point(
    metric: str, rows: Rows, first: Rows | None, name: str, indices: Sequence[int], lengths: Sequence[int]
) -> LengthPoint:
    """rows: of this bin; first: the same rows of the first model."""
    span = _span(indices, lengths)
    if not isinstance(lookup(metric), RowMetric):
        return LengthPoint(name, **span, value=measure([metric], rows)[metric])
    interval = metric_interval(metric, rows)
    against = None if first is None else paired_bootstrap(metric, first, rows)
    return LengthPoint(name, **span, value=interval.value, low=interval.low, high=interval.high, against=against)


# ---------------------------------------------------------------- recall by position


@dataclass(frozen=True)
class PositionBin:
    """The input symbols between two points (0 the start, 1 the end), and the share of them that is in the output; low,
    high: its 95 % bootstrap interval, where that was asked for."""

    start: float
    end: float
    symbols: int
    recall: float
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def recall_by_position(rows: Rows, *, bins: int = 10, intervals: bool = False) -> list[PositionBin]:
    """For each part of the inputs the share of its symbols that are anywhere in the outputs, from start to end.

    A symbol that occurs k times in the input and m < k times in the output counts m / k each time, so that the mean
    over all symbols is the metric `recall`. A symbol belongs to the part that its middle lies in; parts without any
    symbol (inputs shorter than `bins`) are left out.
    """
    if bins < 1:
        raise UserError(f"bins of positions: {bins} given; allowed: 1 or more")
    recalled, count = _recalled(rows, bins)
    parts = np.flatnonzero(count.sum(0))
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * len(parts)
    if intervals and len(parts):
        bounds = [(part.low, part.high) for part in ratio_intervals(recalled[:, parts], count[:, parts])]
    return [
        PositionBin(
            part / bins,
            (part + 1) / bins,
            symbols=int(count[:, part].sum()),
            recall=float(recalled[:, part].sum() / count[:, part].sum()),
            low=low,
            high=high,
        )
        for part, (low, high) in zip(parts.tolist(), bounds, strict=True)
    ]


def _recalled(rows: Rows, bins: int) -> tuple[Float[np.ndarray, "rows bins"], Float[np.ndarray, "rows bins"]]:
    """(symbols that are in the output, symbols) of each row's parts."""
    recalled, count = np.zeros((len(rows), bins)), np.zeros((len(rows), bins))
    inputs = rows.need("inputs", "recall by position")
    for row, (text, prediction) in enumerate(zip(inputs, rows.predictions, strict=True)):
        expected = symbols(text, rows.unit)
        occurrences, predicted = Counter(expected), Counter(symbols(prediction, rows.unit))
        for position, symbol in enumerate(expected):
            part = (2 * position + 1) * bins // (2 * len(expected))
            recalled[row, part] += min(1.0, predicted[symbol] / occurrences[symbol])
            count[row, part] += 1
    return recalled, count
