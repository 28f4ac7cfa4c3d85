"""The ranking of a comparison: quality of each variant over seeds or left-out groups, its cost, and whether the best is
really better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2see.errors import UserError, counted
from seq2see.evaluation.bootstrap import Interval
from seq2see.evaluation.metrics import lookup
from seq2see.evaluation.tables import Tabular

if TYPE_CHECKING:
    from rich.table import Table

BISECTIONS = 200


def student_interval(values: Sequence[float], *, level: float = 0.95) -> Interval | None:
    """The mean over seeds or groups with Student's t interval, mean +- t s / sqrt(n); None for a single one.

    >>> interval = student_interval([1.0, 2.0, 3.0])
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.484, 4.484)
    """
    if not values:
        raise UserError("there are no seeds or groups to take the mean of")
    if len(values) < 2:
        return None
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    reach = student_quantile((1 + level) / 2, len(values) - 1) * float(array.std(ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - reach, mean + reach, level)


def student_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t distribution with that many degrees of freedom, for a share of a half or more.

    >>> round(student_quantile(0.975, 2), 3)
    4.303
    """
    if not 0.5 <= share < 1 or freedom < 1:
        raise ValueError(f"share from 0.5 and below 1, freedom from 1; got {share} and {freedom}")
    low, high = 0.0, 1.0
    while _below(high, freedom) < share:
        high *= 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < share else (low, middle)
    return high


def _below(t: float, freedom: int) -> float:
    """P(T < t) for t >= 0: with n degrees of freedom a finite sum of powers of the cosine of atan(t / sqrt(n))."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (power - 1) / power
    between = math.sin(angle) * total
    if odd:
        between = (2 / math.pi) * (angle + between)
    return 0.5 + between / 2


@dataclass(frozen=True)
class GroupOutcome:
    """A left-out group (speaker, book, writer) measured by a model that was not trained on it.

    trained_inputs: how many of its rows have inputs that were trained on, in rows of other groups.
    """

    rows: int
    metrics: dict[str, float]
    baseline: dict[str, float]
    trained_inputs: int = 0


@dataclass(frozen=True)
class Outcome:
    """The result of one run: metrics of its best model on dev, or on what it left out, and its cost.

    seconds: of the whole run, reports included; seconds_per_update: of an update alone; model: the run's folder;
    fold, groups: what was left out, in cross-validation, where `metrics` are those of all its rows and `dev` those that
    the model was selected by.
    """

    seed: int
    metrics: dict[str, float]
    updates: int
    seconds: float
    seconds_per_update: float
    parameters: int
    model: str
    fold: str = ""
    groups: dict[str, GroupOutcome] = field(default_factory=dict)
    dev: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """One variant with the outcome of each seed, in cross-validation for each fold."""

    name: str
    changes: dict[str, str]
    outcomes: tuple[Outcome, ...]

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups that were left out, in their order; none outside cross-validation."""
        return tuple(dict.fromkeys(group for outcome in self.outcomes for group in outcome.groups))

    @cached_property
    def seeds(self) -> list[int]:
        return list(dict.fromkeys(outcome.seed for outcome in self.outcomes))

    def values(self, metric: str) -> list[float]:
        """One value for each seed; in cross-validation for each group, the mean over its seeds."""
        if not self.groups:
            return [outcome.metrics[metric] for outcome in self.outcomes]
        return [
            fmean(outcome.groups[group].metrics[metric] for outcome in self.outcomes if group in outcome.groups)
            for group in self.groups
        ]

    def mean(self, metric: str) -> float:
        return fmean(self.values(metric))

    def interval(self, metric: str) -> Interval | None:
        """The interval over seeds or groups, clipped to the metric's bounds; None for a single one, or where a value is
        not finite."""
        values = self.values(metric)
        interval = student_interval(values) if all(map(math.isfinite, values)) else None
        return None if interval is None else interval.within(*lookup(metric).bounds)

    @property
    def seconds_per_update(self) -> float:
        return fmean(outcome.seconds_per_update for outcome in self.outcomes)

    @property
    def seconds(self) -> float:
        return fmean(outcome.seconds for outcome in self.outcomes)

    @property
    def parameters(self) -> int:
        return self.outcomes[0].parameters


@dataclass(frozen=True)
class Ranking(Tabular):
    """All variants in the order they were given.

    metric: the one that decides; folder: where results and models are; left_out: variants that failed, and why;
    by: the column whose values were left out in turn.
    """

    metric: str
    contenders: tuple[Contender, ...]
    folder: str = ""
    left_out: tuple[str, ...] = ()
    by: str = ""

    @cached_property
    def best(self) -> Contender:
        """The variant with the best mean; ties are broken by the further metrics, then by order."""
        return max(self.contenders, key=self._quality)

    @cached_property
    def tied(self) -> tuple[Contender, ...]:
        """The variants that equal the best in every metric."""
        first = self._quality(self.best)
        return tuple(other for other in self.contenders if other is not self.best and self._quality(other) == first)

    def _quality(self, contender: Contender) -> tuple[float, ...]:
        """The means, the deciding one first, with signs such that higher is better; NaN is the worst."""
        means = {name: contender.mean(name) for name in self._metrics}
        return tuple(
            -math.inf if math.isnan(mean) else mean if lookup(name).higher_is_better else -mean
            for name, mean in means.items()
        )

    @cached_property
    def _metrics(self) -> list[str]:
        """The metrics that all variants have, the deciding one first."""
        outcomes = [outcome for contender in self.contenders for outcome in contender.outcomes]
        measured = [set(outcome.metrics) for outcome in outcomes]
        measured += [set(group.metrics) for outcome in outcomes for group in outcome.groups.values()]
        others = self.contenders[0].outcomes[0].metrics
        common = [name for name in others if name != self.metric and all(name in metrics for metrics in measured)]
        return [self.metric, *common]

    @cached_property
    def rivals(self) -> tuple[Contender, ...]:
        """The variants whose difference from the best may be due to the seeds, as their intervals overlap; or to the
        groups, as the interval of the difference, group by group, contains 0."""
        others = [other for other in self.contenders if other is not self.best and other not in self.tied]
        return tuple(other for other in others if self._may_be_chance(other))

    def _may_be_chance(self, other: Contender) -> bool:
        first, own = self.best.interval(self.metric), other.interval(self.metric)
        if first is None or own is None:
            return False
        if self.best.groups:  # some speakers are harder than others, for every variant: pairs tell more
            pairs = zip(self.best.values(self.metric), other.values(self.metric), strict=True)
            between = student_interval([one - two for one, two in pairs])
            return between is not None and between.low <= 0 <= between.high
        return own.low <= first.high and first.low <= own.high

    @property
    def varied(self) -> str:
        """The keys that vary."""
        return " and ".join(self.contenders[0].changes)

    @property
    def direction(self) -> str:
        return "higher is better" if lookup(self.metric).higher_is_better else "lower is better"

    def verdict(self) -> str:
        """One sentence: which variant is best, and how sure that is."""
        first, seeds = self.best, self._units
        value = lookup(self.metric).show(first.mean(self.metric))
        if self.tied:
            names = ", ".join(contender.name for contender in (first, *self.tied))
            also = f"; over {seeds} not distinguishable from: {', '.join(rival.name for rival in self.rivals)}"
            return f"a tie, alike in every metric: {names} ({self.metric} {value}){also if self.rivals else ''}"
        best = f"best: {first.name} ({self.metric} {value}{self._tie_breaker})"
        if len(self.contenders) == 1:
            return f"{best}, the only variant"
        if first.interval(self.metric) is None:
            more = "" if first.groups else "; compare with --seeds 3"
            return f"{best}; of {seeds} each, so the difference may be chance{more}"
        if self.rivals:
            return f"{best}; over {seeds} not distinguishable from: {', '.join(rival.name for rival in self.rivals)}"
        if first.groups:
            return f"{best}; over {seeds}, its difference from each other is above chance (95 %, in pairs)"
        return f"{best}; its 95 % interval over {seeds} overlaps no other"

    @property
    def _units(self) -> str:
        """What the values of a variant were taken over."""
        groups = self.best.groups
        if not groups:
            return counted(len(self.best.outcomes), "seed")
        return f"{len(groups):,} left-out values of '{self.by}'" if self.by else counted(len(groups), "fold")

    @property
    def _tie_breaker(self) -> str:
        """The metric that decided, where the first one is a tie."""
        mean = self.best.mean(self.metric)
        equal = [other for other in self.contenders if other is not self.best and other.mean(self.metric) == mean]
        for name in self._metrics[1:] if equal else []:
            if any(other.mean(name) != self.best.mean(name) for other in equal):
                return f", as others have; by {name} {lookup(name).show(self.best.mean(name))}"
        return ""

    def to_dicts(self) -> list[dict[str, Any]]:
        """One record for each variant."""
        return [self._record(contender) for contender in self.contenders]

    def _record(self, contender: Contender) -> dict[str, Any]:
        interval = contender.interval(self.metric)
        return {
            "variant": contender.changes,
            "metric": self.metric,
            "mean": contender.mean(self.metric),
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "best": contender is self.best or contender in self.tied,
            "overlaps_best": contender in self.rivals,
            "seeds": contender.seeds,
            "values": contender.values(self.metric),
            **({"groups": list(contender.groups)} if contender.groups else {}),
            "metrics": {name: contender.mean(name) for name in self._measured(contender)},
            "updates": [outcome.updates for outcome in contender.outcomes],
            "seconds_per_update": contender.seconds_per_update,
            "seconds": contender.seconds,
            "parameters": contender.parameters,
            "models": [outcome.model for outcome in contender.outcomes],
        }

    def _measured(self, contender: Contender) -> list[str]:
        """The metrics of a variant; of groups those that all have."""
        return self._metrics if contender.groups else list(contender.outcomes[0].metrics)

    def tables(self) -> list[Table]:
        """The variants."""
        from rich.table import Table

        others = [name for name in self._measured(self.best) if name != self.metric]
        table = Table(self.varied, self.metric, "", title=self._title)
        for name in [*others, "ms/update", "seconds", "parameters"]:
            table.add_column(name, justify="right")
        for contender in self.contenders:
            mark = self._mark(contender)
            more = [lookup(name).show(contender.mean(name)) for name in others]
            times = [f"{1000 * contender.seconds_per_update:,.1f}", f"{contender.seconds:,.1f}"]
            table.add_row(contender.name, self._show(contender), mark, *more, *times, f"{contender.parameters:,}")
        return [table]

    def remarks(self) -> list[str]:
        return [self.verdict()]

    def _mark(self, contender: Contender) -> str:
        if contender is self.best or contender in self.tied:
            return "tied" if self.tied else "best"
        if contender not in self.rivals:
            return ""
        return "may equal the best" if contender.groups else "overlaps the best"

    @property
    def _title(self) -> str:
        updates = sorted({outcome.updates for contender in self.contenders for outcome in contender.outcomes})
        span = counted(updates[0], "update") if len(updates) == 1 else f"{updates[0]:,} to {updates[-1]:,} updates"
        seeds = counted(len(self.best.seeds), "seed")
        interval = ", 95 % intervals" if len(self.best.outcomes) > 1 else ""
        over = f" over {self._units}" if self.best.groups else ""
        return f"{span}, {seeds} each; {self.metric}{over}: {self.direction}{interval}"

    def _show(self, contender: Contender) -> str:
        show, interval = lookup(self.metric).show, contender.interval(self.metric)
        mean = show(contender.mean(self.metric))
        return mean if interval is None else f"{mean}  [{show(interval.low)}, {show(interval.high)}]"
