"""Translation metrics as sacrebleu defines them, split into what a row adds and what the sums give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.base import METRICS, RowMetric
from seq2see.evaluation.rows import Rows


@METRICS.register("bleu")
class Bleu(RowMetric):
    """Corpus BLEU of detokenised text, 0-100, with sacrebleu's defaults (13a tokens, exponential smoothing).

    A row's statistics are its length, that of the closest reference, and for each order the n-grams matched and in all.
    """

    top = 100.0
    order: ClassVar[int] = 4

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        from sacrebleu.metrics import BLEU  # late: slow to import, and seldom needed

        bleu = BLEU(max_ngram_order=self.order, effective_order=True)
        found = [bleu.sentence_score(*row) for row in zip(rows.predictions, rows.references, strict=True)]
        return np.array([[row.sys_len, row.ref_len, *row.counts, *row.totals] for row in found], dtype=np.float64)

    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        from sacrebleu.metrics import BLEU  # late, as above

        end = 2 + self.order
        return np.array(
            [
                BLEU.compute_bleu(
                    correct=list(row[2:end]),
                    total=list(row[end:]),
                    sys_len=row[0],
                    ref_len=row[1],
                    max_ngram_order=self.order,
                ).score
                for row in sums.round().astype(int).tolist()
            ],
            dtype=np.float64,
        )


@METRICS.register("bleu1")
class Bleu1(Bleu):
    """BLEU of single words."""

    order = 1


@METRICS.register("bleu2")
class Bleu2(Bleu):
    """BLEU of n-grams up to two words."""

    order = 2


@METRICS.register("bleu3")
class Bleu3(Bleu):
    """BLEU of n-grams up to three words."""

    order = 3


@METRICS.register("bleu4")
class Bleu4(Bleu):
    """BLEU of n-grams up to four words: the same as `bleu`, for tables that print all four."""


@METRICS.register("chrf")
class Chrf(RowMetric):
    """chrF2, 0-100: precision and recall of character n-grams up to six, spaces left out, recall counting double.

    A row's statistics are, for each order, the n-grams of the prediction, of the reference that suits it best, and
    those they share.
    """

    top = 100.0
    order: ClassVar[int] = 6
    beta: ClassVar[float] = 2.0

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        return np.array([self._best(*row) for row in zip(rows.predictions, rows.references, strict=True)])

    def _best(self, prediction: str, references: Sequence[str]) -> Float[np.ndarray, " size"]:
        said = self._grams(prediction)
        each = np.array([_matches(said, self._grams(text)) for text in references], dtype=np.float64)
        return np.asarray(each[self.finish(each).argmax()])

    def _grams(self, text: str) -> list[Counter[str]]:
        text = "".join(text.split())
        return [Counter(text[i : i + n] for i in range(len(text) - n + 1)) for n in range(1, self.order + 1)]

    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        said, right, shared = np.moveaxis(sums.reshape(len(sums), self.order, 3), 2, 0)
        used = (said > 0) & (right > 0)  # an order longer than the texts says nothing
        orders = np.maximum(used.sum(axis=1), 1)
        precision = np.where(used, shared / np.maximum(said, 1), 0).sum(axis=1) / orders
        recall = np.where(used, shared / np.maximum(right, 1), 0).sum(axis=1) / orders
        weight = self.beta**2
        below = weight * precision + recall
        return np.asarray(self.top * (1 + weight) * precision * recall / np.where(below > 0, below, 1))


def _matches(said: list[Counter[str]], right: list[Counter[str]]) -> list[int]:
    """Counts by order; n-grams said are not held against a prediction where the reference is too short to have any."""
    counts: list[int] = []
    for mine, theirs in zip(said, right, strict=True):
        shared = sum(min(count, theirs[gram]) for gram, count in mine.items() if gram in theirs)
        counts += [mine.total() if theirs else 0, theirs.total(), shared]
    return counts
