"""A bag of words: which words a text has and how often, whatever their order. The baseline of classifying texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from seq2see.data.words import split_words
from seq2see.errors import UserError
from seq2see.evaluation.baselines import BASELINES, Rewriter

MOST_WORDS = 50_000
"""Words kept, the most frequent ones: what is rarer tells little, and the baseline lies in the model's folder."""
MOST_COUNTS = 5_000_000
"""Counts kept, one of each word for each label: with more than 100 labels fewer words are kept."""


@BASELINES.register("bag-of-words")
class BagOfWords(Rewriter):
    """Multinomial naive Bayes: argmax_y log P(y) + sum_w n_w log P(w | y), every word counted once more than seen.

    labels: {label: rows of it}; counts: {word: how often it stands in the texts of each label, in their order}.

    >>> BagOfWords.fit([("so good", "yes"), ("so bad", "no"), ("good good", "yes")]).predict(["Good!"])
    ['yes']
    """

    name = "bag-of-words"
    says = "a bag of words (naive Bayes)"

    def __init__(self, labels: Mapping[str, int], counts: Mapping[str, Sequence[int]]):
        self.labels, self.counts = dict(labels), {word: list(each) for word, each in counts.items()}
        if any(len(each) != len(self.labels) or min(each, default=0) < 0 for each in self.counts.values()):
            raise ValueError("every word needs a count from 0 for each label")
        rows = sum(self.labels.values())
        totals = [sum(each) for each in zip(*self.counts.values(), strict=True)] or [0] * len(self.labels)
        self._prior = [math.log(number / rows) for number in self.labels.values()]
        self._log_total = [math.log(total + len(self.counts)) if self.counts else 0.0 for total in totals]

    @classmethod
    def fit(cls, rows: Iterable[tuple[str, str]]) -> Self:
        """Count over (text, label), in one pass."""
        labels: Counter[str] = Counter()
        words: dict[str, Counter[str]] = {}
        for text, label in rows:
            labels[label] += 1
            words.setdefault(label, Counter()).update(_words(text))
        if not labels:
            raise UserError(f"baseline '{cls.name}' needs training rows, and there are none")
        names = sorted(labels)
        whole: Counter[str] = Counter()
        for label in names:
            whole.update(words[label])
        kept = sorted(whole, key=lambda word: (-whole[word], word))[: min(MOST_WORDS, MOST_COUNTS // len(names))]
        return cls({name: labels[name] for name in names}, {word: [words[n][word] for n in names] for word in kept})

    def predict(self, inputs: Sequence[str]) -> list[str]:
        names = list(self.labels)
        scores = [self.scores(Counter(_words(text))) for text in inputs]
        return [names[one.index(max(one))] for one in scores]

    def scores(self, found: Mapping[str, int]) -> list[float]:
        """log P(y) + sum_w n_w log P(w | y) for each label; a word never seen in training says nothing."""
        scores = list(self._prior)
        for word, number in found.items():
            for i, seen in enumerate(self.counts.get(word, ())):
                scores[i] += number * (math.log(seen + 1) - self._log_total[i])
        return scores

    def settings(self) -> dict[str, Any]:
        return {"labels": self.labels, "counts": self.counts}


def _words(text: str) -> list[str]:
    return split_words(text.lower())
