"""CIDEr-D (Vedantam, Zitnick & Parikh 2015): how much a caption shares of what its references agree on and other
pictures' captions do not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, sqrt
from typing import ClassVar

from seq2see.evaluation.base import METRICS, Metric
from seq2see.evaluation.rows import Rows, symbols

Gram = tuple[str, ...]
Grams = list[Counter[Gram]]
"""How often each n-gram stands in a text; one for each n."""


@METRICS.register("cider")
class Cider(Metric):
    """CIDEr-D, from 0 to 10; the mean over rows, n = 1 .. 4 and references s_j of

        10 exp(-(l(c) - l(s_j))^2 / (2 sigma^2)) min(g(c), g(s_j)) . g(s_j) / (|g(c)| |g(s_j)|)

    g(x): for each n-gram its count times log(rows / rows with a reference that has it), l: symbols of a text. Counts
    are taken as they are and not by length, as in the program behind published figures: cosines are the same, and what
    min cuts off is a repetition. A row that stands alone scores 0: there is nothing that only its references say.
    Weights belong to the set of rows, so that this is no sum over rows.
    """

    top = 10.0
    longest: ClassVar[int] = 4
    sigma: ClassVar[float] = 6.0

    def score(self, rows: Rows) -> float:
        said = [self._grams(text, rows) for text in rows.predictions]
        right = [[self._grams(text, rows) for text in texts] for texts in rows.references]
        rarity = _rarity(right)
        return sum(self._row(*one, rarity) for one in zip(said, right, strict=True)) / len(rows)

    def show(self, value: float) -> str:
        return f"{value:.3f}"

    def _grams(self, text: str, rows: Rows) -> Grams:
        """
        >>> Cider("cider")._grams("a b a", Rows(["x"], [["x"]]))[0]
        Counter({('a',): 2, ('b',): 1})
        """
        parts = symbols(text, rows.unit)
        starts = [range(len(parts) - n + 1) for n in range(1, self.longest + 1)]
        return [Counter(tuple(parts[i : i + n]) for i in start) for n, start in enumerate(starts, start=1)]

    def _row(self, said: Grams, right: Sequence[Grams], rarity: Rarity) -> float:
        each = [self._one(said, texts, rarity) for texts in right]
        return self.top * sum(each) / len(each)

    def _one(self, said: Grams, right: Grams, rarity: Rarity) -> float:
        apart = said[0].total() - right[0].total()
        likeness = sum(rarity.likeness(mine, theirs) for mine, theirs in zip(said, right, strict=True))
        return exp(-(apart**2) / (2 * self.sigma**2)) * likeness / self.longest


class Rarity:
    """log(rows / rows whose references have an n-gram): what everybody says weighs nothing."""

    def __init__(self, found: Mapping[Gram, int], rows: int):
        self._found, self._most = found, log(rows)

    def weighed(self, grams: Counter[Gram]) -> dict[Gram, float]:
        """g(x); n-grams of no reference weigh as much as those of a single row."""
        return {gram: count * (self._most - log(self._found.get(gram, 1))) for gram, count in grams.items()}

    def likeness(self, said: Counter[Gram], right: Counter[Gram]) -> float:
        """The cosine of two texts, in which saying a thing more often than the reference counts for nothing."""
        mine, theirs = self.weighed(said), self.weighed(right)
        length = _norm(mine.values()) * _norm(theirs.values())
        shared = sum(min(weight, theirs[gram]) * theirs[gram] for gram, weight in mine.items() if gram in theirs)
        return shared / length if length else 0.0


def _rarity(references: Sequence[Sequence[Grams]]) -> Rarity:
    found: Counter[Gram] = Counter()
    for texts in references:
        found.update({gram for text in texts for grams in text for gram in grams})
    return Rarity(found, len(references))


def _norm(values: Iterable[float]) -> float:
    return sqrt(sum(value * value for value in values))
