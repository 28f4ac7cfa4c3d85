"""Metrics of outputs that are numbers: how far they are from the right ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from seq2see.evaluation.base import METRICS, Ratio
from seq2see.evaluation.rows import Rows


@METRICS.register("mse")
class MeanSquaredError(Ratio):
    """Mean of (y_i - x_i) ** 2 over all numbers of all rows; of several references the nearest counts."""

    needs = "numbers"
    higher_is_better = False
    most = math.inf
    of_outputs = False
    cased = False

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        wanted = rows.need("true_numbers", self.name)
        for made, references in zip(rows.need("numbers", self.name), wanted, strict=True):
            yield min(float(np.square(made - reference).sum()) for reference in references), float(len(made))

    def show(self, value: float) -> str:
        """Of data of any scale: four digits that count."""
        return f"{value:.4g}"
