"""Metrics of question answering: answers are compared without case, punctuation and articles."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator

from seq2see.evaluation.base import METRICS, Ratio
from seq2see.evaluation.rows import Rows

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def answer_words(text: str) -> list[str]:
    """The words that count in an answer.

    >>> answer_words("The Tower of   London!")
    ['tower', 'of', 'london']
    """
    kept = "".join(c for c in text.lower() if c not in string.punctuation and unicodedata.category(c)[0] != "P")
    return _ARTICLES.sub(" ", kept).split()


def overlap_f1(prediction: list[str], reference: list[str]) -> float:
    """Harmonic mean of the shares of words in common; two answers without a word are equal."""
    if not prediction or not reference:
        return float(prediction == reference)
    return 2 * (Counter(prediction) & Counter(reference)).total() / (len(prediction) + len(reference))


@METRICS.register("em")
class ExactMatch(Ratio):
    """Share of answers equal to any reference, word by word."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield float(answer_words(prediction) in [answer_words(text) for text in references]), 1.0


@METRICS.register("f1")
class OverlapF1(Ratio):
    """Mean over rows of the words in common with the reference that suits best."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            said = answer_words(prediction)
            yield max(overlap_f1(said, answer_words(text)) for text in references), 1.0
