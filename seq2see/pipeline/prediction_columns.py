"""The columns that predictions add to a table: their names, and the values of a prediction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2see.looks import Prediction

NAMES = ("prediction", "score")


@dataclass(frozen=True)
class PredictionColumns:
    """Columns beside those that a table has; ranks: (prediction, score) for each rank of an n-best list."""

    ranks: list[tuple[str, ...]]

    @classmethod
    def beside(cls, taken: Collection[str], *, n_best: int = 1, scored: bool = True) -> PredictionColumns:
        """taken: the columns of the table; scored: whether outputs have a score."""
        return cls(columns_for(n_best, taken, scored=scored))

    @property
    def names(self) -> list[str]:
        return [name for names in self.ranks for name in names]

    def values(self, prediction: Prediction) -> dict[str, Any]:
        """A prediction by column. An empty input has an empty answer and no score; ranks that a model does not have
        are None."""
        ranked: list[tuple[Any, ...]] = [(answer_of(prediction), None if prediction.reason else prediction.score)]
        ranked += [(other.text, other.score) for other in prediction.alternatives]
        row: dict[str, Any] = dict.fromkeys(self.names)
        for names, values in zip(self.ranks, ranked, strict=False):
            row |= zip(names, values, strict=False)
        return row


def answer_of(prediction: Prediction) -> str:
    """The answer as text; vectors in a form that can be read back."""
    if prediction.vector is None:
        return "" if prediction.answer is None else str(prediction.answer)
    from seq2see.modalities.vector import written

    return written(prediction.vector)


def columns_for(n_best: int, taken: Collection[str], *, scored: bool = True) -> list[tuple[str, ...]]:
    """(prediction, score) columns for each rank; with a suffix if the table already has columns of these names.

    >>> columns_for(2, ["word"])
    [('prediction', 'score'), ('prediction_2', 'score_2')]
    >>> columns_for(2, ["word", "score"])
    [('prediction_run2', 'score_run2'), ('prediction_run2_2', 'score_run2_2')]
    """
    for run in count(1):
        columns = [names_of(run, rank)[: 1 + scored] for rank in range(n_best)]
        if not any(name in taken for names in columns for name in names):
            return columns
    raise AssertionError("unreachable")


def names_of(run: int, rank: int) -> tuple[str, ...]:
    """The columns of a rank (from 0), in a table that was predicted for the `run`th time."""
    ending = ("" if run == 1 else f"_run{run}") + ("" if rank == 0 else f"_{rank + 1}")
    return tuple(f"{name}{ending}" for name in NAMES)
