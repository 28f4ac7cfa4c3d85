"""Metrics of labels, probabilities, numbers and alignments."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.base import METRICS, Ratio, RowMetric, Rows

# ---------------- Metrics of classification


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


# ---------------- Metrics of outputs that are numbers


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


# ---------------- Perplexity


def perplexity(total_log_probability: float, tokens: int) -> float:
    """exp of the mean negative log-probability (nats) of a token.

    >>> round(perplexity(-10 * math.log(7), 10), 6)
    7.0
    """
    if tokens <= 0:
        raise ValueError(f"perplexity is a mean over tokens, and there are {tokens}")
    mean = -total_log_probability / tokens
    return math.exp(mean) if mean < 700 else math.inf


@METRICS.register("perplexity")
class Perplexity(RowMetric):
    """Perplexity of the targets, each token counting alike, `<eos>` included where the model predicts it."""

    needs = "any"
    higher_is_better = False
    top = math.inf
    least = 1.0
    of_outputs = False

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


# ---------------- Alignment error rate

Pair = tuple[int, int]


@dataclass(frozen=True)
class Aligned:
    """Links of one row, each (place of the input, symbol of the output): those found, beside the sure ones and the
    possible ones (the sure among them)."""

    found: Collection[Pair]
    sure: Collection[Pair]
    possible: Collection[Pair]


@METRICS.register("aer")
class AlignmentErrorRate(Ratio):
    """AER = 1 - (|A & S| + |A & P|) / (|A| + |S|) over all rows, of found A, sure S and possible P (Och and Ney 2003).

    Found are the links from each symbol of the given output to the place most looked at while it was written. A symbol
    with no link at all in the table still has one that is found: null links are not known to attention.
    """

    higher_is_better = False
    cased = False
    of_outputs = False

    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        for row in rows.need("alignments", self.name):
            found, sure, possible = set(row.found), set(row.sure), set(row.possible)
            against = len(found) + len(sure)
            yield against - len(found & sure) - len(found & possible), against
