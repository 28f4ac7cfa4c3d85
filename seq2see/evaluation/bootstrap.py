"""How sure a difference is: rows are drawn anew, with replacement, and the metric is taken of each draw.

Koehn (2004), Statistical significance tests for machine translation evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError
from seq2see.evaluation.base import METRICS, RowMetric, Rows
from seq2see.evaluation.metrics import lookup


@dataclass(frozen=True)
class Interval:
    """A value and the bounds between which it lies in `level` of the draws."""

    value: float
    low: float
    high: float
    level: float

    def within(self, least: float, most: float) -> Interval:
        """The same, cut where the value cannot be."""
        return Interval(self.value, max(self.low, least), min(self.high, most), self.level)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows.

    difference: first - second, with its interval; wins: share of draws in which the first is the better one (in the
    metric's own direction), ties counting half; p_value: share of draws in which the model that is better over all
    rows does not win (the draw at hand counted among them, so never 0).
    """

    metric: str
    first: float
    second: float
    difference: Interval
    wins: float
    p_value: float
    samples: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def paired_bootstrap(
    name: str,
    first: Rows,
    second: Rows,
    *,
    samples: int = 1000,
    level: float = 0.95,
    generator: np.random.Generator | None = None,
) -> Comparison:
    """Compare two models' predictions for the same rows: each draw takes the same rows of both."""
    if [list(texts) for texts in first.references] != [list(texts) for texts in second.references]:
        raise UserError("a paired comparison needs the same rows for both models: the references differ")
    metric = _row_metric(name)
    sides = [metric.statistics(metric.view(rows)) for rows in (first, second)]
    one, two = (metric.finish(side.sum(axis=0, keepdims=True))[0] for side in sides)
    draws = _draws(len(first), samples=samples, generator=generator)
    drawn = metric.finish(draws @ sides[0]) - metric.finish(draws @ sides[1])
    sign = 1.0 if metric.higher_is_better else -1.0
    wins = (np.sum(sign * drawn > 0) + 0.5 * np.sum(drawn == 0)) / samples
    ahead = np.sign(one - two)
    upset = np.sum(drawn * ahead <= 0) if ahead else samples
    return Comparison(
        metric=name,
        first=float(one),
        second=float(two),
        difference=_interval(float(one - two), drawn, level=level),
        wins=float(wins),
        p_value=float((upset + 1) / (samples + 1)),
        samples=samples,
    )


def metric_interval(
    name: str,
    rows: Rows,
    *,
    samples: int = 1000,
    level: float = 0.95,
    generator: np.random.Generator | None = None,
) -> Interval:
    """A metric of one model, with the interval of its draws."""
    metric = _row_metric(name)
    statistics = metric.statistics(metric.view(rows))
    value = metric.finish(statistics.sum(axis=0, keepdims=True))[0]
    drawn = metric.finish(_draws(len(rows), samples=samples, generator=generator) @ statistics)
    return _interval(float(value), drawn, level=level)


def mean_interval(
    values: Sequence[float],
    *,
    samples: int = 1000,
    level: float = 0.95,
    generator: np.random.Generator | None = None,
) -> Interval:
    """The mean of some values (losses of rows, metrics of seeds), with the interval of its draws."""
    if not values:
        raise UserError("there are no values to take the mean of")
    array = np.asarray(values, dtype=np.float64)
    drawn = _draws(len(array), samples=samples, generator=generator) @ array / len(array)
    return _interval(float(array.mean()), drawn, level=level)


def ratio_intervals(
    counted: Float[np.ndarray, "rows parts"],
    against: Float[np.ndarray, "rows parts"],
    *,
    samples: int = 1000,
    level: float = 0.95,
    generator: np.random.Generator | None = None,
) -> list[Interval]:
    """For each part the sum of what was counted over what it is counted against, with the interval of its draws; every
    part needs something to count against."""
    draws = _draws(len(counted), samples=samples, generator=generator)
    values = counted.sum(0) / against.sum(0)
    totals = draws @ against
    drawn = np.where(totals > 0, (draws @ counted) / np.maximum(totals, 1e-300), values)
    return [_interval(float(value), drawn[:, part], level=level) for part, value in enumerate(values)]


def _row_metric(name: str) -> RowMetric:
    metric = lookup(name)
    if not isinstance(metric, RowMetric):
        allowed = ", ".join(other for other in METRICS if issubclass(METRICS[other], RowMetric))
        raise UserError(f"metric '{name}' is no sum over rows, so rows cannot be drawn anew for it; allowed: {allowed}")
    return metric


def _draws(rows: int, *, samples: int, generator: np.random.Generator | None) -> Float[np.ndarray, "samples rows"]:
    """How often each draw holds each row."""
    if samples < 1:
        raise UserError(f"draws of the bootstrap: {samples} given; allowed: 1 or more")
    generator = np.random.default_rng(1) if generator is None else generator
    counts = np.empty((samples, rows))
    for sample in counts:
        sample[:] = np.bincount(generator.integers(rows, size=rows), minlength=rows)
    return counts


def _interval(value: float, drawn: Float[np.ndarray, " samples"], *, level: float) -> Interval:
    if not 0 < level < 1:
        raise UserError(f"level of an interval: {level} given; allowed: between 0 and 1")
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high), level)
