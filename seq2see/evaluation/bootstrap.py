"""Bootstrap: confidence intervals and paired comparisons, by resampling rows with replacement.

Koehn (2004), Statistical significance tests for machine translation evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError
from seq2see.evaluation.metrics import METRICS, RowMetric, Rows, lookup


@dataclass(frozen=True)
class Interval:
    """A value and its confidence interval: the bounds between which `level` of the samples lie."""

    value: float
    low: float
    high: float
    level: float

    def within(self, least: float, most: float) -> Interval:
        """The same interval, clipped to the values that are possible."""
        return Interval(self.value, max(self.low, least), min(self.high, most), self.level)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows.

    difference: first - second, with its interval; wins: share of samples in which the first is better (in the metric's
    own direction), where ties count half; p_value: share of samples in which the model that is better over all rows
    does not win (counting the rows themselves as one sample, so it is never 0).
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
    """Compare two models' predictions for the same rows: each sample has the same rows of both (Koehn 2004)."""
    if [list(texts) for texts in first.references] != [list(texts) for texts in second.references]:
        raise UserError("a paired comparison needs the same rows for both models: the references differ")
    metric = _row_metric(name)
    sides = [metric.statistics(metric.view(rows)) for rows in (first, second)]
    value, other = (metric.finish(side.sum(axis=0, keepdims=True))[0] for side in sides)
    counts = _resample(len(first), samples=samples, generator=generator)
    differences = metric.finish(counts @ sides[0]) - metric.finish(counts @ sides[1])
    sign = 1.0 if metric.higher_is_better else -1.0
    wins = (np.sum(sign * differences > 0) + 0.5 * np.sum(differences == 0)) / samples
    ahead = np.sign(value - other)
    upset = np.sum(differences * ahead <= 0) if ahead else samples
    return Comparison(
        metric=name,
        first=float(value),
        second=float(other),
        difference=_interval(float(value - other), differences, level=level),
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
    """A metric of one model with its bootstrap interval."""
    metric = _row_metric(name)
    statistics = metric.statistics(metric.view(rows))
    value = metric.finish(statistics.sum(axis=0, keepdims=True))[0]
    values = metric.finish(_resample(len(rows), samples=samples, generator=generator) @ statistics)
    return _interval(float(value), values, level=level)


def mean_interval(
    values: Sequence[float],
    *,
    samples: int = 1000,
    level: float = 0.95,
    generator: np.random.Generator | None = None,
) -> Interval:
    """The mean of some values (losses of rows, metrics of seeds) with its bootstrap interval."""
    if not values:
        raise UserError("there are no values to take the mean of")
    array = np.asarray(values, dtype=np.float64)
    means = _resample(len(array), samples=samples, generator=generator) @ array / len(array)
    return _interval(float(array.mean()), means, level=level)


def ratio_intervals(
    counts: Float[np.ndarray, "rows parts"],
    totals: Float[np.ndarray, "rows parts"],
    *,
    samples: int = 1000,
    level: float = 0.95,
    generator: np.random.Generator | None = None,
) -> list[Interval]:
    """For each part the ratio sum(counts) / sum(totals) with its bootstrap interval; no total may be 0."""
    sampled = _resample(len(counts), samples=samples, generator=generator)
    values = counts.sum(0) / totals.sum(0)
    below = sampled @ totals
    ratios = np.where(below > 0, (sampled @ counts) / np.maximum(below, 1e-300), values)
    return [_interval(float(value), ratios[:, part], level=level) for part, value in enumerate(values)]


def _row_metric(name: str) -> RowMetric:
    metric = lookup(name)
    if not isinstance(metric, RowMetric):
        allowed = ", ".join(other for other in METRICS if issubclass(METRICS[other], RowMetric))
        raise UserError(f"metric '{name}' is not a sum over rows, so it cannot be resampled; allowed: {allowed}")
    return metric


def _resample(rows: int, *, samples: int, generator: np.random.Generator | None) -> Float[np.ndarray, "samples rows"]:
    """Sample rows with replacement: how often each sample holds each row."""
    if samples < 1:
        raise UserError(f"bootstrap samples: {samples} given; allowed: 1 or more")
    generator = np.random.default_rng(1) if generator is None else generator
    counts = np.empty((samples, rows))
    for sample in counts:
        sample[:] = np.bincount(generator.integers(rows, size=rows), minlength=rows)
    return counts


def _interval(value: float, values: Float[np.ndarray, " samples"], *, level: float) -> Interval:
    if not 0 < level < 1:
        raise UserError(f"confidence level: {level} given; allowed: between 0 and 1")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high), level)
