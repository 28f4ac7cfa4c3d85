"""Metrics of classification."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.base import METRICS, Ratio, RowMetric
from seq2see.evaluation.rows import Rows


@METRICS.register("accuracy")
class Accuracy(Ratio):
    """Share of labels equal to any of their references."""

    needs = "label"

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield float(prediction in references), 1.0


@METRICS.register("macro_f1")
class MacroF1(RowMetric):
    """Mean over labels of 2 right / (said + true), every label that occurs counting alike.

    Where a row has several references, the one that was said is the true one, otherwise the first.
    """

    needs = "label"

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        true = [
            said if said in references else references[0]
            for said, references in zip(rows.predictions, rows.references, strict=True)
        ]
        number = {label: i for i, label in enumerate(sorted({*rows.predictions, *true}))}
        counts = np.zeros((len(rows), 2, len(number)))
        for row, (said, right) in enumerate(zip(rows.predictions, true, strict=True)):
            counts[row, 0, number[right]] += said == right
            counts[row, 1, number[said]] += 1
            counts[row, 1, number[right]] += 1
        return counts.reshape(len(rows), -1)

    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        right, occurred = np.moveaxis(sums.reshape(len(sums), 2, -1), 1, 0)
        f1 = 2 * right / np.maximum(occurred, 1)
        return np.asarray(f1.sum(axis=1) / np.maximum((occurred > 0).sum(axis=1), 1))
