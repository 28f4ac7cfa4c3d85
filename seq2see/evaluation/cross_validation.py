"""The result of cross-validation: each left-out group, the mean over groups with its interval, all rows together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from seq2see.errors import counted
from seq2see.evaluation.bootstrap import Interval
from seq2see.evaluation.metrics import lookup
from seq2see.evaluation.ranking import Contender
from seq2see.evaluation.tables import Tabular

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class CrossValidation(Tabular):
    """A recipe measured on what it was not trained on.

    by: the column whose values were left out in turn, empty for folds of rows; pooled: metrics over the rows of all
    groups at once; runs: all of them, one for each seed and fold; notes: on how the rows were dealt.
    """

    task: str
    by: str
    metric: str
    runs: Contender
    pooled: dict[str, float]
    folder: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that every group has, the deciding one first."""
        groups = [group.metrics for outcome in self.runs.outcomes for group in outcome.groups.values()]
        common = [name for name in groups[0] if all(name in metrics for metrics in groups)]
        return [self.metric, *(name for name in common if name != self.metric)]

    def rows(self, group: str) -> int:
        return next(outcome.groups[group].rows for outcome in self.runs.outcomes if group in outcome.groups)

    def values(self, metric: str) -> dict[str, float]:
        """The metric of each group; of several seeds the mean."""
        return dict(zip(self.runs.groups, self.runs.values(metric), strict=True))

    def mean(self, metric: str | None = None) -> float:
        """The mean over groups, each of which counts the same."""
        return self.runs.mean(metric or self.metric)

    def interval(self, metric: str | None = None) -> Interval | None:
        """Student's t interval of that mean (95 %)."""
        return self.runs.interval(metric or self.metric)

    @property
    def baseline(self) -> dict[str, float]:
        """The mean over groups of each baseline that all of them have."""
        groups = [group.baseline for outcome in self.runs.outcomes for group in outcome.groups.values()]
        return {
            name: fmean(each[name] for each in groups) for name in groups[0] if all(name in each for each in groups)
        }

    @property
    def dev(self) -> dict[str, float]:
        """The mean over runs of the dev metrics that their weights were selected by."""
        runs = [outcome.dev for outcome in self.runs.outcomes]
        return {name: fmean(dev[name] for dev in runs) for name in runs[0] if all(name in dev for dev in runs)}

    @property
    def trained_inputs(self) -> int:
        """Left-out rows whose inputs were trained on, in rows of other groups; of several seeds the first counts."""
        first = [outcome for outcome in self.runs.outcomes if outcome.seed == self.runs.seeds[0]]
        return sum(group.trained_inputs for outcome in first for group in outcome.groups.values())

    def to_dict(self) -> dict[str, Any]:
        intervals = {name: self.interval(name) for name in self.metrics}
        values = {name: self.values(name) for name in self.metrics}
        return {
            "task": self.task,
            "by": self.by or None,
            "metric": self.metric,
            "groups": [
                {
                    "group": group,
                    "rows": self.rows(group),
                    "metrics": {name: values[name][group] for name in self.metrics},
                    "models": [outcome.model for outcome in self.runs.outcomes if group in outcome.groups],
                }
                for group in self.runs.groups
            ],
            "mean": {name: self.mean(name) for name in self.metrics},
            "interval": {name: None if one is None else [one.low, one.high] for name, one in intervals.items()},
            "pooled": self.pooled,
            "baseline": self.baseline,
            "dev": self.dev,
            "seeds": self.runs.seeds,
            "rows": sum(self.rows(group) for group in self.runs.groups),
            "trained_inputs": self.trained_inputs,
            "notes": list(self.notes),
        }

    def tables(self) -> list[Table]:
        """A line for each group, then the mean over groups, its interval, and all rows together."""
        from rich.table import Table

        table = Table(self.by or "fold", title=self._title)
        for name in ["rows", *self.metrics]:
            table.add_column(name, justify="right")
        values = {name: self.values(name) for name in self.metrics}
        for group in self.runs.groups:
            cells = self._cells({name: values[name][group] for name in self.metrics})
            table.add_row(group, f"{self.rows(group):,}", *cells)
        table.add_section()
        table.add_row("mean", "", *self._cells({name: self.mean(name) for name in self.metrics}))
        table.add_row("95 % interval", "", *(self._bounds(name) for name in self.metrics))
        rows = sum(self.rows(group) for group in self.runs.groups)
        table.add_row("all rows", f"{rows:,}", *self._cells(self.pooled))
        if self.baseline:
            table.add_row("baseline, mean", "", *self._cells(self.baseline))
        table.add_row("dev of the runs, mean", "", *self._cells(self.dev))
        return [table]

    def remarks(self) -> list[str]:
        remarks = []
        if self.trained_inputs:
            rows = sum(self.rows(group) for group in self.runs.groups)
            where = f" with another '{self.by}'" if self.by else ""
            remarks.append(
                f"{self.trained_inputs:,} of {counted(rows, 'left-out row')} have inputs that were trained on in rows"
                f"{where}: new inputs may be harder"
            )
        return remarks

    def _cells(self, values: Mapping[str, float]) -> list[str]:
        return [lookup(name).show(values[name]) if name in values else "-" for name in self.metrics]

    def _bounds(self, name: str) -> str:
        interval, show = self.interval(name), lookup(name).show
        return "-" if interval is None else f"[{show(interval.low)}, {show(interval.high)}]"

    @property
    def _title(self) -> str:
        direction = "higher is better" if lookup(self.metric).higher_is_better else "lower is better"
        left_out = f"each value of '{self.by}' held out in turn" if self.by else "each fold of rows held out in turn"
        return f"{self.task}, {left_out}, {counted(len(self.runs.seeds), 'seed')} each; {self.metric}: {direction}"
