"""Metrics of labels, numbers, probabilities and alignments: accuracy, macro F1, MSE, perplexity, AER."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.metrics import METRICS, Ratio, RowMetric, Rows


@METRICS.register("accuracy")
class Accuracy(Ratio):
    """Share of labels equal to any of their references."""

    applies_to = "label"

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield float(prediction in references), 1.0


@METRICS.register("macro_f1")
class MacroF1(RowMetric):
    """The unweighted mean over labels of F1 = 2 * correct / (predicted + true).

    Of several references the predicted one counts as true, otherwise the first.
    """

    applies_to = "label"

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        true = [
            predicted if predicted in references else references[0]
            for predicted, references in zip(rows.predictions, rows.references, strict=True)
        ]
        number = {label: i for i, label in enumerate(sorted({*rows.predictions, *true}))}
        counts = np.zeros((len(rows), 2, len(number)))
        for row, (predicted, label) in enumerate(zip(rows.predictions, true, strict=True)):
            counts[row, 0, number[label]] += predicted == label
            counts[row, 1, number[predicted]] += 1
            counts[row, 1, number[label]] += 1
        return counts.reshape(len(rows), -1)

    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        correct, occurred = np.moveaxis(sums.reshape(len(sums), 2, -1), 1, 0)
        f1 = 2 * correct / np.maximum(occurred, 1)
        return np.asarray(f1.sum(axis=1) / np.maximum((occurred > 0).sum(axis=1), 1))


@METRICS.register("mse")
class MeanSquaredError(Ratio):
    """Mean of (y_i - x_i) ** 2 over all numbers of all rows; of several references the closest counts."""

    applies_to = "numbers"
    higher_is_better = False
    most = math.inf
    outputs_only = False
    cased = False

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        true = rows.need("true_numbers", self.name)
        for predicted, references in zip(rows.need("numbers", self.name), true, strict=True):
            yield min(float(np.square(predicted - reference).sum()) for reference in references), float(len(predicted))

    def show(self, value: float) -> str:
        """Four significant digits, as data may be of any scale."""
        return f"{value:.4g}"


@METRICS.register("mae")
class MeanAbsoluteError(MeanSquaredError):
    """Mean of |y_i - x_i| over all numbers of all rows, in their own unit; of several references the closest counts."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        true = rows.need("true_numbers", self.name)
        for predicted, references in zip(rows.need("numbers", self.name), true, strict=True):
            yield min(float(np.abs(predicted - reference).sum()) for reference in references), float(len(predicted))


def perplexity(total_log_probability: float, tokens: int) -> float:
    """exp of the mean negative log-probability (in nats) of a token.

    >>> round(perplexity(-10 * math.log(7), 10), 6)
    7.0
    """
    if tokens <= 0:
        raise ValueError(f"perplexity is a mean over tokens, and there are {tokens}")
    mean = -total_log_probability / tokens
    return math.exp(mean) if mean < 700 else math.inf


@METRICS.register("perplexity")
class Perplexity(RowMetric):
    """Perplexity of the targets, exp(-sum log P / tokens), `<eos>` included where the model predicts it."""

    applies_to = "any"
    needs_inputs = False
    higher_is_better = False
    top = math.inf
    least = 1.0
    outputs_only = False

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows 2"]:
        targets = rows.need("targets", self.name)
        return np.array(
            [
                (total, len(target))
                for total, target in zip(rows.need("log_probabilities", self.name), targets, strict=True)
            ],
            dtype=np.float64,
        )

    def finish(self, sums: Float[np.ndarray, "sets 2"]) -> Float[np.ndarray, " sets"]:
        return np.array([perplexity(total, round(tokens)) for total, tokens in sums.tolist()])


Pair = tuple[int, int]


@dataclass(frozen=True)
class Aligned:
    """Links of one row, each (place of the input, symbol of the output): the predicted ones, and of the true ones the
    sure and the possible ones (the sure among them)."""

    predicted: Collection[Pair]
    sure: Collection[Pair]
    possible: Collection[Pair]


@METRICS.register("aer")
class AlignmentErrorRate(Ratio):
    """AER = 1 - (|A & S| + |A & P|) / (|A| + |S|) over all rows, of predicted links A, sure ones S and possible ones P
    (Och and Ney 2003).

    Each symbol of the output is linked to the place with the largest attention weight. Attention has no null links: a
    symbol without any true link still has a predicted one.
    """

    higher_is_better = False
    cased = False
    outputs_only = False
    needs_links = True

    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        for row in rows.need("alignments", self.name):
            predicted, sure, possible = set(row.predicted), set(row.sure), set(row.possible)
            total = len(predicted) + len(sure)
            yield total - len(predicted & sure) - len(predicted & possible), total
