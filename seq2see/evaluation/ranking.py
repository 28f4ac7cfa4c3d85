"""Variants of a recipe side by side: quality over seeds, what it costs, and whether the best is really the best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from statistics import fmean
from typing import Any

from seq2see.errors import counted
from seq2see.evaluation.bootstrap import Interval
from seq2see.evaluation.metrics import lookup
from seq2see.evaluation.seeds import seeds_interval

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
        """Over seeds; None where there is one seed, or one whose number is not finite."""
        values = self.values(metric)
        return seeds_interval(values) if all(map(math.isfinite, values)) else None

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
        """The best mean; of equals the first."""
        sign = 1 if lookup(self.metric).higher_is_better else -1

        def value(one: Contender) -> float:
            mean = one.mean(self.metric)
            return -math.inf if math.isnan(mean) else sign * mean

        return max(self.contenders, key=value)

    @cached_property
    def rivals(self) -> tuple[Contender, ...]:
        """Those whose intervals overlap the best's: seeds alone may have put them behind it."""
        first = self.best.interval(self.metric)
        if first is None:
            return ()
        found = []
        for one in self.contenders:
            own = one.interval(self.metric)
            if one is not self.best and own is not None and own.low <= first.high and first.low <= own.high:
                found.append(one)
        return tuple(found)

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
        said = f"best: {first.name} ({self.metric} {lookup(self.metric).show(first.mean(self.metric))})"
        if len(self.contenders) == 1:
            return f"{said}, with nothing beside it"
        if first.interval(self.metric) is None:
            return f"{said}; of {seeds} each, so the difference may be chance: --seeds 3 tells"
        if self.rivals:
            return f"{said}; over {seeds} not told apart from: {', '.join(one.name for one in self.rivals)}"
        return f"{said}; its 95 % interval over {seeds} overlaps no other"

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
            "best": one is self.best,
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
            mark = "best" if one is self.best else "overlaps the best" if one in self.rivals else ""
            more = [lookup(name).show(one.mean(name)) for name in others]
            cost = [f"{1000 * one.seconds_per_update:,.1f}", f"{one.seconds:,.1f}", f"{one.parameters:,}"]
            table.add_row(one.name, self._shown(one), mark, *more, *cost)
        console = Console(file=StringIO(), width=UNBROKEN, color_system=None)
        with console.capture() as captured:
            console.print(table)
        return f"{captured.get()}{self.verdict()}\n"

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
