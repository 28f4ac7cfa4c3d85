"""What `seq2see evaluate` says, as a record, as JSON and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any

from seq2see.errors import counted
from seq2see.evaluation.base import Rows
from seq2see.evaluation.baselines import Baseline, assign, beside
from seq2see.evaluation.by_length import LengthBin, PositionBin, quality_by_length, recall_by_position
from seq2see.evaluation.metrics import lookup, measure


@dataclass(frozen=True)
class Seen:
    """How many of some rows a model was trained on.

    rows: all of them; checked: those that could be looked up (all, but where only a sample of a large training table is
    known); trained_on: those that were trained on; other_output: those whose inputs were, with another output.
    """

    rows: int
    checked: int
    trained_on: int
    other_output: int

    def to_dict(self) -> dict[str, int]:
        return {"trained_on": self.trained_on, "other_output": self.other_output, "checked": self.checked}

    def lines(self, what: str = "row") -> list[str]:
        """For the user to read; nothing where no row was trained on. what: a row's name."""
        if not (self.trained_on or self.other_output):
            return []
        of = counted(self.checked, what)
        sampled = f" (the others of {self.rows:,} were not looked up)" if self.checked < self.rows else ""
        found = []
        if self.trained_on:
            were = "was" if self.trained_on == 1 else "were"
            found.append(f"{self.trained_on:,} of {of} {were} trained on{sampled}: this says little about new {what}s")
        if self.other_output:
            have = "has an input that was" if self.other_output == 1 else "have inputs that were"
            found.append(f"{self.other_output:,} of {of} {have} trained on with another output{sampled}")
        return found


@dataclass(frozen=True)
class Report:
    """Metrics of a model and, beside them, of trivial ones.

    inputs: how many of the rows' inputs are distinct (rows with equal ones are references of each other), where there
    are any; said: what the trivial models do, for the head of the table; a metric that cannot be taken of them is not
    in `baseline`; reversed: the metrics of the same model on the same rows with their videos backwards;
    seen: how many of the rows the model was trained on, where that is known.
    """

    rows: int
    metrics: dict[str, float]
    baseline: dict[str, float] = field(default_factory=dict)
    said: str = ""
    by_length: list[LengthBin] = field(default_factory=list)
    positions: list[PositionBin] = field(default_factory=list)
    inputs: int | None = None
    reversed: dict[str, float] = field(default_factory=dict)
    seen: Seen | None = None

    def joined(self, other: Report) -> Report:
        """This report with the metrics of another over the same rows (perplexity is taken of all references)."""
        said = [self.said] if self.said else []
        if other.said and other.said not in said:
            said.append(f"{', '.join(other.metrics)}: {other.said}" if said else other.said)
        return replace(
            self,
            metrics={**self.metrics, **other.metrics},
            baseline={**self.baseline, **other.baseline},
            said="; ".join(said),
        )

    def to_dict(self) -> dict[str, Any]:
        """As in `evaluate --json`: what was not asked for is left out, and infinity, which JSON has not, is null."""
        out: dict[str, Any] = {"rows": self.rows}
        if self.inputs is not None:
            out["inputs"] = self.inputs
        out |= {"metrics": _finite(self.metrics), "baseline": _finite(self.baseline)}
        if self.reversed:
            out["reversed"] = _finite(self.reversed)
        if self.seen is not None:
            out["seen"] = self.seen.to_dict()
        if self.said:
            out["baseline_says"] = self.said
        if self.by_length:
            out["by_length"] = [part.to_dict() | {"metrics": _finite(part.metrics)} for part in self.by_length]
        if self.positions:
            out["positions"] = [part.to_dict() for part in self.positions]
        return out

    @property
    def _measured(self) -> str:
        distinct = "" if self.inputs in (None, self.rows) else f", {counted(self.inputs or 0, 'distinct input')}"
        return f"{counted(self.rows, 'row')}{distinct}"

    def text(self, *, width: int = 100) -> str:
        """Tables for a person to read."""
        from rich.console import Console  # late: JSON needs no tables
        from rich.table import Table

        names = list(self.metrics)
        turned = ["backwards"] if self.reversed else []
        main = Table("metric", "", "model", *turned, self.said or "baseline", title=self._measured)
        for name in names:
            better = "higher is better" if lookup(name).higher_is_better else "lower is better"
            columns = [self.metrics, *([self.reversed] if turned else []), self.baseline]
            main.add_row(name, better, *(_shown(name, column) for column in columns))
        tables = [main]
        if self.by_length:
            lengths = Table("input length", "rows", *names, title="by input length")
            for part in self.by_length:
                span = f"{part.shortest}-{part.longest}" if part.shortest < part.longest else str(part.shortest)
                lengths.add_row(span, f"{part.rows:,}", *(_shown(name, part.metrics) for name in names))
            tables.append(lengths)
        if self.positions:
            places = Table("part of the input", "symbols", "recall", title="input symbols found in the output")
            for place in self.positions:
                places.add_row(f"{place.start:.0%} to {place.end:.0%}", f"{place.symbols:,}", f"{place.recall:.4f}")
            tables.append(places)
        console = Console(file=StringIO(), width=width, color_system=None)
        with console.capture() as captured:
            for table in tables:
                console.print(table)
        return captured.get()


def evaluate(
    names: Sequence[str],
    rows: Rows,
    *,
    baselines: Sequence[Baseline] = (),
    bins: int = 0,
    positions: bool = False,
) -> Report:
    """All that was asked for.

    bins: so many parts by input length, 0 for none; positions: with the recall of input symbols by their position.
    """
    return Report(
        rows=len(rows),
        metrics=measure(names, rows),
        baseline=beside(baselines, names, rows),
        said=", ".join(model.says for model in assign(baselines, names)),
        by_length=quality_by_length(names, rows, bins=bins) if bins else [],
        positions=recall_by_position(rows) if positions else [],
    )


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _shown(name: str, values: dict[str, float]) -> str:
    return lookup(name).show(values[name]) if name in values else "-"
