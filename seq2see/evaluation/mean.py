"""The trivial model of outputs that are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import UserError
from seq2see.evaluation.baselines import BASELINES, Baseline
from seq2see.evaluation.metrics import lookup
from seq2see.evaluation.rows import Rows


@BASELINES.register("mean")
class Mean(Baseline):
    """Whatever the input, the mean of the outputs trained on: the best that one can do without looking.

    >>> Mean.fit([np.array([0.0, 1.0]), np.array([2.0, 1.0])]).numbers
    [1.0, 1.0]
    """

    name = "mean"
    says = "the mean of the rows trained on"

    def __init__(self, numbers: Sequence[float]):
        self.numbers = list(numbers)

    @classmethod
    def fit(cls, outputs: Iterable[NDArray[np.float64]]) -> Self:
        total, number = np.zeros(0), 0
        for number, output in enumerate(outputs, start=1):
            total = output if number == 1 else total + output
        if not number:
            raise UserError(f"baseline '{cls.name}' needs training outputs, and there are none")
        return cls((total / number).tolist())

    def can(self, metric: str) -> bool:
        return lookup(metric).needs == "numbers"

    def answered(self, rows: Rows) -> Rows:
        return rows.guessed([np.array(self.numbers)] * len(rows))

    def settings(self) -> dict[str, Any]:
        return {"numbers": self.numbers}
