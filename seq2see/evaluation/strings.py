"""Metrics on strings of symbols: exact match, edit distances, answers to questions, reconstruction."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float
from rapidfuzz.distance import Levenshtein

from seq2see.errors import UserError
from seq2see.evaluation.metrics import METRICS, Ratio, Rows, Unit, symbols


def canonical(text: str, unit: Unit) -> str:
    """The form in which equal outputs are equal: every character counts, or, in other units, symbols but not spaces."""
    return text if unit == "character" else " ".join(text.split())


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions of symbols that turn one sequence into the other.

    >>> edit_distance("kitten", "sitting")
    3
    """
    return Levenshtein.distance(first, second)


def closest(prediction: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """(edits to the closest reference, its length); of equally close ones the longest counts."""
    edits, shorter = min((edit_distance(prediction, reference), -len(reference)) for reference in references)
    return edits, -shorter


@METRICS.register("exact")
class Exact(Ratio):
    """Share of outputs equal to any of their references."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield float(canonical(prediction, rows.unit) in {canonical(text, rows.unit) for text in references}), 1.0


@METRICS.register("exact@n")
class ExactAt(Ratio):
    """Share of rows where one of the first n different hypotheses equals any reference (`exact@5`)."""

    outputs_only = False

    def __init__(self, name: str, *, lowercase: bool = False, plain: bool = False):
        super().__init__(name, lowercase=lowercase, plain=plain)
        number = name.partition("@")[2]
        if not number.isdecimal() or int(number) == 0:
            raise UserError(f"metric '{name}': the number of hypotheses has to follow the @, as in exact@5")
        self.n = int(number)

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        lists = rows.need("alternatives", self.name)
        for prediction, others, references in zip(rows.predictions, lists, rows.references, strict=True):
            hypotheses = list(dict.fromkeys(canonical(text, rows.unit) for text in (prediction, *others)))[: self.n]
            yield float(not {canonical(text, rows.unit) for text in references}.isdisjoint(hypotheses)), 1.0


@METRICS.register("cer")
class SymbolErrorRate(Ratio):
    """Symbol (character) error rate: edits to the closest reference over the symbols of the references.

    Symbols are characters (spaces included), or phonemes and the like where the output is made of those.
    """

    higher_is_better = False
    most = math.inf

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        unit: Unit = "symbol" if rows.unit == "symbol" else "character"
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield closest(symbols(prediction, unit), [symbols(text, unit) for text in references])


@METRICS.register("wer")
class WordErrorRate(Ratio):
    """Word error rate: edits of words to the closest reference over the words of the references."""

    higher_is_better = False
    most = math.inf

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield closest(prediction.split(), [text.split() for text in references])


class RecognitionRate(Ratio):
    """1 - error rate, which is below zero where there are more errors than symbols."""

    higher_is_better = True
    least = -math.inf
    most = 1.0

    def finish(self, sums: Float[np.ndarray, "sets 2"]) -> Float[np.ndarray, " sets"]:
        return 1.0 - super().finish(sums)


@METRICS.register("crr")
class SymbolRecognitionRate(RecognitionRate, SymbolErrorRate):
    """1 - cer, the character recognition rate."""


@METRICS.register("wrr")
class WordRecognitionRate(RecognitionRate, WordErrorRate):
    """1 - wer, the word recognition rate."""


_ARTICLES = re.compile(r"\b(a|an|the)\b")


def answer_words(text: str) -> list[str]:
    """The words of an answer without case, punctuation and articles.

    >>> answer_words("The Tower of   London!")
    ['tower', 'of', 'london']
    """
    kept = "".join(c for c in text.lower() if c not in string.punctuation and unicodedata.category(c)[0] != "P")
    return _ARTICLES.sub(" ", kept).split()


def overlap_f1(prediction: list[str], reference: list[str]) -> float:
    """F1 of the words in common, the harmonic mean of precision and recall; two empty answers are equal."""
    if not prediction or not reference:
        return float(prediction == reference)
    return 2 * (Counter(prediction) & Counter(reference)).total() / (len(prediction) + len(reference))


@METRICS.register("em")
class ExactMatch(Ratio):
    """Exact match: share of answers whose words equal those of any reference (case, punctuation, articles ignored)."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield float(answer_words(prediction) in [answer_words(text) for text in references]), 1.0


@METRICS.register("f1")
class OverlapF1(Ratio):
    """Mean over rows of the F1 of words against the best matching reference."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            words = answer_words(prediction)
            yield max(overlap_f1(words, answer_words(text)) for text in references), 1.0


@METRICS.register("token_accuracy")
class TokenAccuracy(Ratio):
    """Share of positions with the right symbol; positions beyond the end of either text are wrong.

    Of several references the one with the largest share counts.
    """

    nothing = 1.0

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            predicted = symbols(prediction, rows.unit)
            each = [_matches(predicted, symbols(text, rows.unit)) for text in references]
            yield max(each, key=lambda counts: counts[0] / counts[1] if counts[1] else 1.0)


def _matches(predicted: list[str], reference: list[str]) -> tuple[int, int]:
    """(positions with equal symbols, positions)."""
    return sum(a == b for a, b in zip(predicted, reference, strict=False)), max(len(predicted), len(reference))


@METRICS.register("recall")
class Recall(Ratio):
    """Share of the input's symbols that are in the output, where each occurrence counts once."""

    nothing = 1.0

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for text, prediction in zip(rows.need("inputs", self.name), rows.predictions, strict=True):
            expected = Counter(symbols(text, rows.unit))
            yield (expected & Counter(symbols(prediction, rows.unit))).total(), expected.total()
