"""The unigram model: perplexity of a model that knows how often symbols occur, and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from seq2see.evaluation.baselines import BASELINES, Baseline
from seq2see.evaluation.likelihood import perplexity
from seq2see.evaluation.rows import Rows

UNKNOWN, END = "<unk>", "<eos>"


@BASELINES.register("unigram")
class Unigram(Baseline):
    """P(w) = (count(w) + 1) / (all counts + symbols), over the symbols seen, `<unk>` and `<eos>`.

    A symbol never seen has the probability of `<unk>`. The counts are to be those of the model's own vocabulary
    (rare symbols counted as `<unk>`): perplexities over different vocabularies cannot be compared.

    >>> round(Unigram({"a": 5, "<eos>": 1}).perplexity([["a", "<eos>"]]), 4)
    2.5981
    """

    name = "unigram"
    says = "the unigram model"

    def __init__(self, counts: Mapping[str, int]):
        self.counts = {UNKNOWN: 0, END: 0} | dict(counts)
        total = sum(self.counts.values()) + len(self.counts)
        self._log = {symbol: math.log((count + 1) / total) for symbol, count in self.counts.items()}

    @classmethod
    def fit(cls, targets: Iterable[Sequence[str]]) -> Self:
        """From training outputs as the model predicts them, `<eos>` included."""
        counts: Counter[str] = Counter()
        for target in targets:
            counts.update(target)
        return cls(counts)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, sequences: int) -> Self:
        """From a vocabulary's counts, which leave out the `<eos>` at the end of each of so many sequences."""
        return cls({**counts, END: sequences})

    def log_probability(self, target: Sequence[str]) -> float:
        """Of the symbols given, `<eos>` included where it is among them."""
        return math.fsum(self._log.get(symbol, self._log[UNKNOWN]) for symbol in target)

    def perplexity(self, targets: Sequence[Sequence[str]]) -> float:
        """Over all symbols of all targets."""
        return perplexity(math.fsum(map(self.log_probability, targets)), sum(map(len, targets)))

    def can(self, metric: str) -> bool:
        return metric == "perplexity"

    def answered(self, rows: Rows) -> Rows:
        targets = rows.need("targets", "perplexity")
        return replace(rows, log_probabilities=[self.log_probability(target) for target in targets])

    def settings(self) -> dict[str, Any]:
        return {"counts": self.counts}
