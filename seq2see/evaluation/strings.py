"""Metrics on strings of symbols: whole outputs right or wrong, and edits from prediction to reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float
from rapidfuzz.distance import Levenshtein

from seq2see.errors import UserError
from seq2see.evaluation.base import METRICS, Ratio
from seq2see.evaluation.rows import Rows, Unit, symbols


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
