"""Does attention tell the truth? Its agreement with what the output really depends on, beside that of chance.

Jain and Wallace (2019), Attention is not explanation; Serrano and Smith (2019), Is attention interpretable?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError, counted
from seq2see.evaluation.bootstrap import Interval, mean_interval

# ---------------- Do two ways of weighing the same places put them in the same order?


def kendall_tau(one: Float[np.ndarray, " places"], other: Float[np.ndarray, " places"]) -> float:
    """Kendall's tau-b: the share of pairs of places in the same order, less that in the opposite one; ties have none.

    1: the same order, -1: the opposite one, 0: no more alike than chance; NaN where either knows no order at all.

    >>> kendall_tau(np.array([0.1, 0.2, 0.7]), np.array([1.0, 3.0, 2.0]))
    0.333
    """
    upper = np.triu_indices(len(one), k=1)
    first, second = (np.sign(np.subtract.outer(values, values))[upper] for values in (one, other))
    ordered = np.sqrt(np.sum(first != 0) * np.sum(second != 0))
    return float(np.sum(first * second) / ordered) if ordered else float("nan")


def same_top(one: Float[np.ndarray, " places"], other: Float[np.ndarray, " places"]) -> float:
    """Whether the largest of one is the largest of the other; of several that are equal each is one drawn at random.

    >>> same_top(np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 0.0]))
    0.5
    """
    first, second = (values == values.max() for values in (one, other))
    return float(np.sum(first & second) / (np.sum(first) * np.sum(second)))


Map = Float[np.ndarray, "steps places"]
Likeness = Callable[[np.ndarray, np.ndarray], float]
SHUFFLES = 10
"""Deals of each step's weights: what is left of chance then is small beside what rows differ by."""


@dataclass(frozen=True)
class Weighed:
    """One row: how much each place weighs in each output step, by attention and by other measures of importance."""

    attention: Map
    importance: dict[str, Map]


@dataclass(frozen=True)
class Agreement:
    """How attention agrees with one measure of importance.

    tau: Kendall's, over the places of each step; top: the share of steps whose most looked-at place is the most
    important one; shuffled: the same of attention whose weights were dealt out to the places anew.
    """

    input: str
    measure: str
    tau: Interval
    shuffled_tau: Interval
    top: Interval
    shuffled_top: Interval

    def to_dict(self) -> dict[str, Any]:
        values = {key: getattr(self, key).to_dict() for key in ("tau", "shuffled_tau", "top", "shuffled_top")}
        return {"input": self.input, "measure": self.measure, **values}


@dataclass(frozen=True)
class Faithfulness:
    """Agreements by input and measure, over so many rows and steps; left_out: how many rows had no order to compare."""

    rows: int
    steps: int
    agreements: tuple[Agreement, ...]
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        told = [one.to_dict() for one in self.agreements]
        return {"rows": self.rows, "steps": self.steps, "left_out": self.left_out, "agreements": told}

    def text(self) -> str:
        """A table for a person to read."""
        from rich.console import Console  # late: JSON needs no tables
        from rich.table import Table

        head = f"attention beside what matters: {counted(self.rows, 'row')}, {counted(self.steps, 'output step')}"
        table = Table("input", "measure", "tau", "shuffled", "same top place", "shuffled", title=head)
        for one in self.agreements:
            numbers = (one.tau, one.shuffled_tau, one.top, one.shuffled_top)
            table.add_row(one.input, one.measure, *map(_shown, numbers))
        console = Console(file=StringIO(), width=200, color_system=None)
        with console.capture() as captured:
            console.print(table)
        without = f"{counted(self.left_out, 'row')} left out: at none of their steps do two places weigh differently\n"
        return captured.get() + (without if self.left_out else "")


def faithfulness(weighed: Mapping[str, Sequence[Weighed]], *, asked: int | None = None, seed: int = 1) -> Faithfulness:
    """Agreements of rows by the input that was looked at. Steps are averaged over a row, and rows are drawn anew.

    asked: how many rows there were, where those of one place are not among the weighed.
    """
    found: list[Agreement] = []
    sizes: list[tuple[int, int]] = []
    for name, rows in weighed.items():
        ranked = [row for row in (_ranked(row) for row in rows) if row is not None]
        if not ranked:
            raise UserError(
                f"'{name}': at no step do two places weigh differently, so there is no order to compare: inputs are of "
                "one place each, or the attention is the same everywhere"
            )
        sizes.append((len(ranked), sum(len(row.attention) for row in ranked)))
        for measure in ranked[0].importance:
            found.append(_agreement(name, measure, ranked, np.random.default_rng(seed)))
    most = asked if asked is not None else max(map(len, weighed.values()))
    kept, steps = max(sizes)
    return Faithfulness(kept, steps, tuple(found), most - kept)


def _ranked(row: Weighed) -> Weighed | None:
    """The steps in which attention and every measure put places in some order; None where there are none."""
    maps = [row.attention, *row.importance.values()]
    kept = np.all([np.ptp(one, axis=1) > 0 for one in maps], axis=0)
    if not kept.any():
        return None
    return Weighed(row.attention[kept], {name: one[kept] for name, one in row.importance.items()})


def _agreement(name: str, measure: str, rows: Sequence[Weighed], generator: np.random.Generator) -> Agreement:
    true = [Weighed(row.attention, {measure: row.importance[measure]}) for row in rows]
    dealt = [_dealt(row, generator) for row in true]
    return Agreement(
        name,
        measure,
        tau=_mean(kendall_tau, true, measure),
        shuffled_tau=_mean(kendall_tau, dealt, measure),
        top=_mean(same_top, true, measure),
        shuffled_top=_mean(same_top, dealt, measure),
    )


def _dealt(row: Weighed, generator: np.random.Generator) -> Weighed:
    """Every step several times, its weights dealt out to the places anew each time."""
    often = {name: np.repeat(one, SHUFFLES, axis=0) for name, one in row.importance.items()}
    return Weighed(generator.permuted(np.repeat(row.attention, SHUFFLES, axis=0), axis=1), often)


def _mean(likeness: Likeness, rows: Sequence[Weighed], measure: str) -> Interval:
    def of_row(row: Weighed) -> float:
        steps = zip(row.attention, row.importance[measure], strict=True)
        return float(np.mean([likeness(looked, matters) for looked, matters in steps]))

    return mean_interval([of_row(row) for row in rows])


def _shown(interval: Interval) -> str:
    return f"{interval.value:.3f}  [{interval.low:.3f}, {interval.high:.3f}]"
