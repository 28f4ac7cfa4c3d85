"""The report of `seq2see evaluate`: a record that prints as JSON and as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from seq2see.errors import counted
from seq2see.evaluation.baselines import BASELINES, Baseline, assign, measure_baselines, measure_further
from seq2see.evaluation.by_length import LengthBin, PositionBin, quality_by_length, recall_by_position
from seq2see.evaluation.metrics import Rows, lookup, measure
from seq2see.evaluation.tables import Tabular

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class TrainingOverlap:
    """How many of the evaluated rows a model was trained on.

    rows: all of them; checked: those that could be looked up (fewer than all where only a sample of a large training
    table is known); trained_on: those that were trained on; other_output: those whose inputs were trained on with
    another output.
    """

    rows: int
    checked: int
    trained_on: int
    other_output: int

    def to_dict(self) -> dict[str, int]:
        return {"trained_on": self.trained_on, "other_output": self.other_output, "checked": self.checked}

    def lines(self, what: str = "row") -> list[str]:
        """Notices for the user; none where no row was trained on. what: the word for a row."""
        if not (self.trained_on or self.other_output):
            return []
        of = counted(self.checked, what)
        sampled = f" (the others of {self.rows:,} were not looked up)" if self.checked < self.rows else ""
        lines = []
        if self.trained_on:
            were = "was" if self.trained_on == 1 else "were"
            lines.append(f"{self.trained_on:,} of {of} {were} trained on{sampled}: this says little about new {what}s")
        if self.other_output:
            have = "has an input that was" if self.other_output == 1 else "have inputs that were"
            lines.append(f"{self.other_output:,} of {of} {have} trained on with another output{sampled}")
        return lines


@dataclass(frozen=True)
class Report(Tabular):
    """The metrics of a model and of its baselines.

    inputs: how many of the rows' inputs are distinct (rows with equal inputs are references of each other), where there
    are any; baseline: without the metrics that no baseline supports; baseline_says: what the baselines do, for the head
    of the table; further: {name: metrics} of further baselines; reversed: those of the model on the rows with their
    videos backwards; seen: how many of the rows the model was trained on, where that is known.
    """

    rows: int
    metrics: dict[str, float]
    baseline: dict[str, float] = field(default_factory=dict)
    baseline_says: str = ""
    further: dict[str, dict[str, float]] = field(default_factory=dict)
    by_length: list[LengthBin] = field(default_factory=list)
    positions: list[PositionBin] = field(default_factory=list)
    inputs: int | None = None
    reversed: dict[str, float] = field(default_factory=dict)
    seen: TrainingOverlap | None = None

    def join(self, other: Report) -> Report:
        """This report with the metrics of another report on the same rows."""
        says = [self.baseline_says] if self.baseline_says else []
        if other.baseline_says and other.baseline_says not in says:
            says.append(f"{', '.join(other.metrics)}: {other.baseline_says}" if says else other.baseline_says)
        return replace(
            self,
            metrics={**self.metrics, **other.metrics},
            baseline={**self.baseline, **other.baseline},
            baseline_says="; ".join(says),
            further={**self.further, **other.further},
        )

    def to_dict(self) -> dict[str, Any]:
        """The record of `evaluate --json`, without what was not asked for; infinity becomes null."""
        out: dict[str, Any] = {"rows": self.rows}
        if self.inputs is not None:
            out["inputs"] = self.inputs
        out |= {"metrics": _finite(self.metrics), "baseline": _finite(self.baseline)}
        if self.reversed:
            out["reversed"] = _finite(self.reversed)
        if self.seen is not None:
            out["seen"] = self.seen.to_dict()
        if self.baseline_says:
            out["baseline_says"] = self.baseline_says
        if self.further:
            out["further_baselines"] = {name: _finite(values) for name, values in self.further.items()}
        if self.by_length:
            out["by_length"] = [part.to_dict() | {"metrics": _finite(part.metrics)} for part in self.by_length]
        if self.positions:
            out["positions"] = [part.to_dict() for part in self.positions]
        return out

    @property
    def _title(self) -> str:
        distinct = "" if self.inputs in (None, self.rows) else f", {counted(self.inputs or 0, 'distinct input')}"
        return f"{counted(self.rows, 'row')}{distinct}"

    line_width = 100

    def tables(self) -> list[Table]:
        """The metrics; by input length and by position where these were asked for."""
        from rich.table import Table

        names = list(self.metrics)
        backwards = ["backwards"] if self.reversed else []
        beside = [self.baseline_says or "baseline", *(BASELINES[name].description for name in self.further)]
        main = Table("metric", "", "model", *backwards, *beside, title=self._title)
        for name in names:
            better = "higher is better" if lookup(name).higher_is_better else "lower is better"
            columns = [self.metrics, *([self.reversed] if backwards else []), self.baseline, *self.further.values()]
            main.add_row(name, better, *(_format(name, column) for column in columns))
        tables = [main]
        if self.by_length:
            lengths = Table("input length", "rows", *names, title="by input length")
            for part in self.by_length:
                span = f"{part.shortest}-{part.longest}" if part.shortest < part.longest else str(part.shortest)
                lengths.add_row(span, f"{part.rows:,}", *(_format(name, part.metrics) for name in names))
            tables.append(lengths)
        if self.positions:
            places = Table("part of the input", "symbols", "recall", title="input symbols found in the output")
            for place in self.positions:
                places.add_row(f"{place.start:.0%} to {place.end:.0%}", f"{place.symbols:,}", f"{place.recall:.4f}")
            tables.append(places)
        return tables


def evaluate(
    names: Sequence[str],
    rows: Rows,
    *,
    baselines: Sequence[Baseline] = (),
    further: bool = True,
    bins: int = 0,
    positions: bool = False,
) -> Report:
    """Measure rows by some metrics, with the baselines beside them.

    further: also measure baselines that are not the first to support any metric; bins: the number of bins by input
    length, 0 for none; positions: with the recall of input symbols by position.
    """
    return Report(
        rows=len(rows),
        metrics=measure(names, rows),
        baseline=measure_baselines(baselines, names, rows),
        baseline_says=", ".join(baseline.description for baseline in assign(baselines, names)),
        further=measure_further(baselines, names, rows) if further else {},
        by_length=quality_by_length(names, rows, bins=bins) if bins else [],
        positions=recall_by_position(rows) if positions else [],
    )


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _format(name: str, values: dict[str, float]) -> str:
    return lookup(name).show(values[name]) if name in values else "-"
