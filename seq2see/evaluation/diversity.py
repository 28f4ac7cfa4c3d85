"""How varied outputs are: a dialog model that always says the same is caught here."""

from __future__ import annotations

from typing import ClassVar

from seq2see.evaluation.base import METRICS, Metric
from seq2see.evaluation.rows import Rows


class Distinct(Metric):
    """Different n-grams of words over all n-grams of words, in all predictions together.

    Not a function of sums over rows: a row adds nothing with an n-gram that another row has said.
    """

    order: ClassVar[int]

    def score(self, rows: Rows) -> float:
        grams = [gram for text in rows.predictions for gram in self._grams(text.split())]
        return len(set(grams)) / len(grams) if grams else 0.0

    def _grams(self, words: list[str]) -> list[tuple[str, ...]]:
        return [tuple(words[i : i + self.order]) for i in range(len(words) - self.order + 1)]


@METRICS.register("distinct1")
class Distinct1(Distinct):
    """Different words."""

    order = 1


@METRICS.register("distinct2")
class Distinct2(Distinct):
    """Different pairs of neighbouring words."""

    order = 2
