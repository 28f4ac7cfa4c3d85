"""Perplexity: how surprised a model is by the right outputs."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.base import METRICS, RowMetric
from seq2see.evaluation.rows import Rows


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
