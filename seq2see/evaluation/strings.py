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
from seq2see.evaluation.base import METRICS, Ratio, Rows, Unit, symbols

# ---------------- Metrics on strings of symbols


def same(text: str, unit: Unit) -> str:
    """What two outputs must share to be equal: each character, or, in other units, the symbols but not the spaces."""
    return text if unit == "character" else " ".join(text.split())


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions of symbols that turn one sequence into the other.

    >>> edit_distance("kitten", "sitting")
    3
    """
    return Levenshtein.distance(first, second)


def closest(prediction: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Edits to the closest reference and its length; of equally close ones the longest."""
    edits, shorter = min((edit_distance(prediction, reference), -len(reference)) for reference in references)
    return edits, -shorter


@METRICS.register("exact")
class Exact(Ratio):
    """Share of outputs equal to any of their references."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield float(same(prediction, rows.unit) in {same(text, rows.unit) for text in references}), 1.0


@METRICS.register("exact@n")
class ExactAt(Ratio):
    """Share of rows where one of the first n different hypotheses equals any reference (`exact@5`)."""

    of_outputs = False

    def __init__(self, name: str, *, lowercase: bool = False, plain: bool = False):
        super().__init__(name, lowercase=lowercase, plain=plain)
        number = name.partition("@")[2]
        if not number.isdecimal() or int(number) == 0:
            raise UserError(f"metric '{name}': after the @ stands how many hypotheses count, as in exact@5")
        self.n = int(number)

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        lists = rows.need("alternatives", self.name)
        for prediction, others, references in zip(rows.predictions, lists, rows.references, strict=True):
            tried = list(dict.fromkeys(same(text, rows.unit) for text in (prediction, *others)))[: self.n]
            yield float(not {same(text, rows.unit) for text in references}.isdisjoint(tried)), 1.0


@METRICS.register("cer")
class SymbolErrorRate(Ratio):
    """Edits of symbols, against the closest reference, over the references' symbols.

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
    """Edits of words, against the closest reference, over the references' words."""

    higher_is_better = False
    most = math.inf

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield closest(prediction.split(), [text.split() for text in references])


class Recognition(Ratio):
    """One less the rate of errors: below zero where more is wrong than there is."""

    higher_is_better = True
    least = -math.inf
    most = 1.0

    def finish(self, sums: Float[np.ndarray, "sets 2"]) -> Float[np.ndarray, " sets"]:
        return 1.0 - super().finish(sums)


@METRICS.register("crr")
class SymbolRecognitionRate(Recognition, SymbolErrorRate):
    """1 - cer, the character recognition rate."""


@METRICS.register("wrr")
class WordRecognitionRate(Recognition, WordErrorRate):
    """1 - wer, the word recognition rate."""


# ---------------- Metrics of question answering

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


# ---------------- Metrics of autoencoders


@METRICS.register("recall")
class Recall(Ratio):
    """Share of the input's symbols found in the output; a symbol said once answers for one of its occurrences only."""

    nothing = 1.0

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for given, prediction in zip(rows.need("inputs", self.name), rows.predictions, strict=True):
            wanted = Counter(symbols(given, rows.unit))
            yield (wanted & Counter(symbols(prediction, rows.unit))).total(), wanted.total()


@METRICS.register("token_accuracy")
class TokenAccuracy(Ratio):
    """Share of positions with the right symbol; positions beyond the end of either text are wrong.

    Of several references the one with the largest share counts.
    """

    nothing = 1.0

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            said = symbols(prediction, rows.unit)
            each = [_by_position(said, symbols(text, rows.unit)) for text in references]
            yield max(each, key=lambda found: found[0] / found[1] if found[1] else 1.0)


def _by_position(said: list[str], right: list[str]) -> tuple[int, int]:
    return sum(a == b for a, b in zip(said, right, strict=False)), max(len(said), len(right))
