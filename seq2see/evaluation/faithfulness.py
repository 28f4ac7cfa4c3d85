"""Faithfulness of attention: its agreement with measures of importance (occlusion, gradients), beside chance.

Jain and Wallace (2019), Attention is not explanation; Serrano and Smith (2019), Is attention interpretable?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError, counted
from seq2see.evaluation.bootstrap import Interval, mean_interval
from seq2see.evaluation.tables import Tabular

if TYPE_CHECKING:
    from rich.table import Table


def kendall_tau(weights: Float[np.ndarray, " places"], other: Float[np.ndarray, " places"]) -> float:
    """Kendall's tau-b: the share of pairs of places in the same order, minus that in the opposite one, without ties.

    1: the same order, -1: the opposite one, 0: as expected by chance; NaN where all weights of either are equal.

    >>> kendall_tau(np.array([0.1, 0.2, 0.7]), np.array([1.0, 3.0, 2.0]))
    0.333
    """
    upper = np.triu_indices(len(weights), k=1)
    first, second = (np.sign(np.subtract.outer(values, values))[upper] for values in (weights, other))
    ordered = np.sqrt(np.sum(first != 0) * np.sum(second != 0))
    return float(np.sum(first * second) / ordered) if ordered else float("nan")


def same_top(weights: Float[np.ndarray, " places"], other: Float[np.ndarray, " places"]) -> float:
    """The probability that both have their largest weight at the same place, where ties are broken at random.

    >>> same_top(np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 0.0]))
    0.5
    """
    first, second = (values == values.max() for values in (weights, other))
    return float(np.sum(first & second) / (np.sum(first) * np.sum(second)))


Map = Float[np.ndarray, "steps places"]
Similarity = Callable[[np.ndarray, np.ndarray], float]
SHUFFLES = 10
"""Random permutations of each step's weights: enough for chance to vary less than rows do."""


@dataclass(frozen=True)
class PlaceWeights:
    """One row: the weight of each place in each output step, by attention and by other measures of importance."""

    attention: Map
    importance: dict[str, Map]


@dataclass(frozen=True)
class Agreement:
    """The agreement of attention with one measure of importance.

    tau: Kendall's, over the places of each step; top: the share of steps whose place of largest attention is the most
    important one; shuffled: the same of attention with its weights permuted at random.
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
class Faithfulness(Tabular):
    """Agreements by input and measure, over so many rows and steps; left_out: rows without any order to compare."""

    rows: int
    steps: int
    agreements: tuple[Agreement, ...]
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        agreements = [agreement.to_dict() for agreement in self.agreements]
        return {"rows": self.rows, "steps": self.steps, "left_out": self.left_out, "agreements": agreements}

    def tables(self) -> list[Table]:
        """The agreements."""
        from rich.table import Table

        head = (
            f"attention compared with what matters: {counted(self.rows, 'row')}, {counted(self.steps, 'output step')}"
        )
        table = Table("input", "measure", "tau", "shuffled", "same top place", "shuffled", title=head)
        for row in self.agreements:
            numbers = (row.tau, row.shuffled_tau, row.top, row.shuffled_top)
            table.add_row(row.input, row.measure, *map(_show, numbers))
        return [table]

    def remarks(self) -> list[str]:
        without = f"{counted(self.left_out, 'row')} left out: at none of their steps do two places weigh differently"
        return [without] if self.left_out else []


def faithfulness(
    weights: Mapping[str, Sequence[PlaceWeights]], *, total: int | None = None, seed: int = 1
) -> Faithfulness:
    """The agreements of rows by attended input: the mean over a row's steps, with intervals by resampling rows.

    total: how many rows there were, where those with a single place are left out of the weights.
    """
    agreements: list[Agreement] = []
    sizes: list[tuple[int, int]] = []
    for name, rows in weights.items():
        ranked = [row for row in (_ordered_steps(row) for row in rows) if row is not None]
        if not ranked:
            raise UserError(
                f"'{name}': at no step do two places weigh differently, so there is no order to compare: inputs are of "
                "one place each, or the attention is the same everywhere"
            )
        sizes.append((len(ranked), sum(len(row.attention) for row in ranked)))
        for measure in ranked[0].importance:
            agreements.append(_agreement(name, measure, ranked, np.random.default_rng(seed)))
    every = total if total is not None else max(map(len, weights.values()))
    kept, steps = max(sizes)
    return Faithfulness(kept, steps, tuple(agreements), every - kept)


def _ordered_steps(row: PlaceWeights) -> PlaceWeights | None:
    """The steps in which neither attention nor any measure is the same everywhere; None where there are none."""
    maps = [row.attention, *row.importance.values()]
    kept = np.all([np.ptp(weights, axis=1) > 0 for weights in maps], axis=0)
    if not kept.any():
        return None
    return PlaceWeights(row.attention[kept], {name: weights[kept] for name, weights in row.importance.items()})


def _agreement(name: str, measure: str, rows: Sequence[PlaceWeights], generator: np.random.Generator) -> Agreement:
    true = [PlaceWeights(row.attention, {measure: row.importance[measure]}) for row in rows]
    shuffled = [_shuffle(row, generator) for row in true]
    return Agreement(
        name,
        measure,
        tau=_mean(kendall_tau, true, measure),
        shuffled_tau=_mean(kendall_tau, shuffled, measure),
        top=_mean(same_top, true, measure),
        shuffled_top=_mean(same_top, shuffled, measure),
    )


def _shuffle(row: PlaceWeights, generator: np.random.Generator) -> PlaceWeights:
    """Every step several times, each time with its attention weights permuted at random."""
    importance = {name: np.repeat(weights, SHUFFLES, axis=0) for name, weights in row.importance.items()}
    return PlaceWeights(generator.permuted(np.repeat(row.attention, SHUFFLES, axis=0), axis=1), importance)


def _mean(similarity: Similarity, rows: Sequence[PlaceWeights], measure: str) -> Interval:
    def of_row(row: PlaceWeights) -> float:
        steps = zip(row.attention, row.importance[measure], strict=True)
        return float(np.mean([similarity(attention, importance) for attention, importance in steps]))

    return mean_interval([of_row(row) for row in rows])


def _show(interval: Interval) -> str:
    if interval.low == interval.high:  # of one row
        return f"{interval.value:.3f}"
    return f"{interval.value:.3f}  [{interval.low:.3f}, {interval.high:.3f}]"
