"""What a metric is: a number for a set of rows, nearly always a function of sums over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.rows import Rows
from seq2see.recipe.measures import Taken
from seq2see.registry import Registry

Needs = Taken


class Metric(ABC):
    """A measure of a whole set of rows.

    needs: the kind of output it is for; top: 1 for fractions, 100 for BLEU and its like, which also rules how
    many decimals are printed; least, most: what it can be at all (most not given: top); name: as it was asked for, for
    messages; lowercase: capital letters do not count, plain: nor do marks of punctuation;
    of_outputs: outputs that are texts are all it takes (no probabilities, no n-best lists, no numbers);
    cased: letters are what it looks at.
    """

    needs: ClassVar[Needs] = "text"
    higher_is_better: ClassVar[bool] = True
    top: ClassVar[float] = 1.0
    least: ClassVar[float] = 0.0
    most: ClassVar[float | None] = None
    of_outputs: ClassVar[bool] = True
    cased: ClassVar[bool] = True

    def __init__(self, name: str, *, lowercase: bool = False, plain: bool = False):
        self.name = name
        self.lowercase = lowercase or plain
        self.plain = plain

    def view(self, rows: Rows) -> Rows:
        """The rows as this metric reads them: what `score` and `statistics` are to be given."""
        rows = rows.lowercased() if self.lowercase else rows
        return rows.unmarked() if self.plain else rows

    @abstractmethod
    def score(self, rows: Rows) -> float:
        """The metric over all rows."""

    @property
    def bounds(self) -> tuple[float, float]:
        return self.least, self.top if self.most is None else self.most

    def show(self, value: float) -> str:
        """As printed: fractions with four decimals, scores up to 100 with two."""
        return f"{value:.4f}" if self.top == 1.0 else f"{value:.2f}"


class RowMetric(Metric):
    """A metric that is a function of sums of row statistics: resampling rows (bootstrap) then only sums anew."""

    @abstractmethod
    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        """What each row adds."""

    @abstractmethod
    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        """The metric of each set of rows, from the sums of its rows' statistics."""

    def score(self, rows: Rows) -> float:
        return float(self.finish(self.statistics(rows).sum(axis=0, keepdims=True))[0])


class Ratio(RowMetric):
    """Sum of what was counted over the sum of what it is counted against: shares, error rates and means.

    nothing: the value where there is nothing to count against (all references empty); what was counted even so
    (symbols inserted into empty references) is added as if against one.
    """

    nothing: ClassVar[float] = 0.0

    @abstractmethod
    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        """For each row what is counted, and against how many."""

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows 2"]:
        return np.array(list(self.counts(rows)), dtype=np.float64)

    def finish(self, sums: Float[np.ndarray, "sets 2"]) -> Float[np.ndarray, " sets"]:
        counted, against = sums[:, 0], sums[:, 1]
        rate = np.where(against > 0, counted / np.maximum(against, 1e-300), counted + self.nothing)
        return np.asarray(self.top * rate)


METRICS: Registry[type[Metric]] = Registry("metric")
