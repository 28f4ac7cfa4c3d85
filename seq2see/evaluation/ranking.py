"""Variants of a recipe side by side: quality over seeds, what it costs, and whether the best is really the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from statistics import fmean
from typing import Any

import numpy as np

from seq2see.errors import UserError, counted
from seq2see.evaluation.bootstrap import Interval
from seq2see.evaluation.metrics import lookup

# ---------------- A metric over seeds

BISECTIONS = 200


def seeds_interval(values: Sequence[float], *, level: float = 0.95) -> Interval | None:
    """The mean with Student's interval, mean +- t s / sqrt(n): right for the few seeds one can afford.

    None where a single seed says nothing of the others.

    >>> made = seeds_interval([1.0, 2.0, 3.0])
    >>> round(made.low, 3), round(made.high, 3)
    (-0.484, 4.484)
    """
    if not values:
        raise UserError("there are no seeds to take the mean of")
    if len(values) < 2:
        return None
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    reach = student_quantile((1 + level) / 2, len(values) - 1) * float(array.std(ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - reach, mean + reach, level)


def student_quantile(share: float, freedom: int) -> float:
    """The t below which Student's distribution of that many degrees of freedom has this share (a half or more).

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
    """P(T < t) for t >= 0: for whole degrees of freedom a finite sum of powers of the cosine of atan(t / sqrt(n))."""
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


UNBROKEN = 500
"""Characters a line may have: a table takes what it needs, and its cells are not broken."""


@dataclass(frozen=True)
class Outcome:
    """What came of one run: metrics of its best model on dev, and its cost.

    seconds: of the whole run, reports included; seconds_per_update: of an update alone; model: the run's folder.
    """

    seed: int
    metrics: dict[str, float]
    updates: int
    seconds: float
    seconds_per_update: float
    parameters: int
    model: str


@dataclass(frozen=True)
class Contender:
    """One variant with the outcomes of its seeds."""

    name: str
    changes: dict[str, str]
    outcomes: tuple[Outcome, ...]

    def values(self, metric: str) -> list[float]:
        return [outcome.metrics[metric] for outcome in self.outcomes]

    def mean(self, metric: str) -> float:
        return fmean(self.values(metric))

    def interval(self, metric: str) -> Interval | None:
        """Over seeds, cut at what the metric can be; None for one seed, or one whose number is not finite."""
        values = self.values(metric)
        made = seeds_interval(values) if all(map(math.isfinite, values)) else None
        return None if made is None else made.within(*lookup(metric).bounds)

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
class Ranking:
    """All variants, in the order they were given.

    metric: the one that decides; folder: where results and models lie; left_out: what could not be, and why.
    """

    metric: str
    contenders: tuple[Contender, ...]
    folder: str = ""
    left_out: tuple[str, ...] = ()

    @cached_property
    def best(self) -> Contender:
        """The best mean; of equals the best by the metrics that follow, and of those that stay equal the first."""
        return max(self.contenders, key=self._quality)

    @cached_property
    def tied(self) -> tuple[Contender, ...]:
        """Those that no metric tells apart from the best."""
        first = self._quality(self.best)
        return tuple(one for one in self.contenders if one is not self.best and self._quality(one) == first)

    def _quality(self, one: Contender) -> tuple[float, ...]:
        """Its means, the deciding one first, turned so that more is better; no number is worse than any."""
        means = {name: one.mean(name) for name in self._metrics}
        return tuple(
            -math.inf if math.isnan(mean) else mean if lookup(name).higher_is_better else -mean
            for name, mean in means.items()
        )

    @cached_property
    def _metrics(self) -> list[str]:
        """What all variants were measured by, the deciding metric first."""
        measured = [set(outcome.metrics) for one in self.contenders for outcome in one.outcomes]
        others = self.contenders[0].outcomes[0].metrics
        return [self.metric, *(name for name in others if name != self.metric and all(name in its for its in measured))]

    @cached_property
    def rivals(self) -> tuple[Contender, ...]:
        """Those whose intervals overlap the best's: seeds alone may have put them behind it."""
        first = self.best.interval(self.metric)
        if first is None:
            return ()
        found = []
        for one in self.contenders:
            own = one.interval(self.metric)
            if own is not None and own.low <= first.high and first.low <= own.high:
                found.append(one)
        return tuple(one for one in found if one is not self.best and one not in self.tied)

    @property
    def varied(self) -> str:
        """The keys that vary."""
        return " and ".join(self.contenders[0].changes)

    @property
    def direction(self) -> str:
        return "higher is better" if lookup(self.metric).higher_is_better else "lower is better"

    def verdict(self) -> str:
        """One sentence: which is best, and is that real?"""
        first, seeds = self.best, counted(len(self.best.outcomes), "seed")
        value = lookup(self.metric).show(first.mean(self.metric))
        if self.tied:
            names = ", ".join(one.name for one in (first, *self.tied))
            also = f"; over {seeds} not told apart from: {', '.join(one.name for one in self.rivals)}"
            return f"a tie, alike in every metric: {names} ({self.metric} {value}){also if self.rivals else ''}"
        said = f"best: {first.name} ({self.metric} {value}{self._by_what})"
        if len(self.contenders) == 1:
            return f"{said}, with nothing beside it"
        if first.interval(self.metric) is None:
            return f"{said}; of {seeds} each, so the difference may be chance: --seeds 3 tells"
        if self.rivals:
            return f"{said}; over {seeds} not told apart from: {', '.join(one.name for one in self.rivals)}"
        return f"{said}; its 95 % interval over {seeds} overlaps no other"

    @property
    def _by_what(self) -> str:
        """Which metric decided, where the first could not."""
        mean = self.best.mean(self.metric)
        equal = [one for one in self.contenders if one is not self.best and one.mean(self.metric) == mean]
        for name in self._metrics[1:] if equal else []:
            if any(one.mean(name) != self.best.mean(name) for one in equal):
                return f", as others have; by {name} {lookup(name).show(self.best.mean(name))}"
        return ""

    def to_dicts(self) -> list[dict[str, Any]]:
        """One record for each variant."""
        return [self._record(one) for one in self.contenders]

    def _record(self, one: Contender) -> dict[str, Any]:
        interval = one.interval(self.metric)
        return {
            "variant": one.changes,
            "metric": self.metric,
            "mean": one.mean(self.metric),
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "best": one is self.best or one in self.tied,
            "overlaps_best": one in self.rivals,
            "seeds": [outcome.seed for outcome in one.outcomes],
            "values": one.values(self.metric),
            "metrics": {name: one.mean(name) for name in one.outcomes[0].metrics},
            "updates": [outcome.updates for outcome in one.outcomes],
            "seconds_per_update": one.seconds_per_update,
            "seconds": one.seconds,
            "parameters": one.parameters,
            "models": [outcome.model for outcome in one.outcomes],
        }

    def text(self) -> str:
        """A table for a person to read, the verdict below it."""
        from rich.console import Console  # late: JSON needs no tables
        from rich.table import Table

        others = [name for name in self.best.outcomes[0].metrics if name != self.metric]
        table = Table(self.varied, self.metric, "", title=self._head)
        for name in [*others, "ms/update", "seconds", "parameters"]:
            table.add_column(name, justify="right")
        for one in self.contenders:
            mark = self._mark(one)
            more = [lookup(name).show(one.mean(name)) for name in others]
            cost = [f"{1000 * one.seconds_per_update:,.1f}", f"{one.seconds:,.1f}", f"{one.parameters:,}"]
            table.add_row(one.name, self._shown(one), mark, *more, *cost)
        console = Console(file=StringIO(), width=UNBROKEN, color_system=None)
        with console.capture() as captured:
            console.print(table)
        return f"{captured.get()}{self.verdict()}\n"

    def _mark(self, one: Contender) -> str:
        if one is self.best or one in self.tied:
            return "tied" if self.tied else "best"
        return "overlaps the best" if one in self.rivals else ""

    @property
    def _head(self) -> str:
        updates = sorted({outcome.updates for one in self.contenders for outcome in one.outcomes})
        span = counted(updates[0], "update") if len(updates) == 1 else f"{updates[0]:,} to {updates[-1]:,} updates"
        seeds = counted(len(self.best.outcomes), "seed")
        interval = ", 95 % intervals" if len(self.best.outcomes) > 1 else ""
        return f"{span}, {seeds} each; {self.metric}: {self.direction}{interval}"

    def _shown(self, one: Contender) -> str:
        show, interval = lookup(self.metric).show, one.interval(self.metric)
        mean = show(one.mean(self.metric))
        return mean if interval is None else f"{mean}  [{show(interval.low)}, {show(interval.high)}]"
