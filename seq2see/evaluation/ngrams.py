"""Metrics by n-grams: BLEU and chrF (as sacrebleu defines them), ROUGE, CIDEr-D, distinct-n."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, log, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.metrics import METRICS, Metric, Ratio, RowMetric, Rows, symbols


@METRICS.register("bleu")
class Bleu(RowMetric):
    """Corpus BLEU of detokenised text, 0-100, with sacrebleu's defaults (13a tokens, exponential smoothing).

    A row's statistics are its length, that of the closest reference, and for each order the matched and all n-grams.
    """

    top = 100.0
    order: ClassVar[int] = 4

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        from sacrebleu.metrics import BLEU  # imported late: it takes long

        bleu = BLEU(max_ngram_order=self.order, effective_order=True)
        scores = [bleu.sentence_score(*row) for row in zip(rows.predictions, rows.references, strict=True)]
        return np.array([[row.sys_len, row.ref_len, *row.counts, *row.totals] for row in scores], dtype=np.float64)

    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        from sacrebleu.metrics import BLEU

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
    """chrF2, 0-100: F-score of character n-grams up to six, without spaces, with recall weighted double.

    A row's statistics are, for each order, the n-grams of the prediction, of the best matching reference, and those
    that they share.
    """

    top = 100.0
    order: ClassVar[int] = 6
    beta: ClassVar[float] = 2.0

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        return np.array([self._best(*row) for row in zip(rows.predictions, rows.references, strict=True)])

    def _best(self, prediction: str, references: Sequence[str]) -> Float[np.ndarray, " size"]:
        predicted = self._grams(prediction)
        each = np.array([_matches(predicted, self._grams(text)) for text in references], dtype=np.float64)
        return np.asarray(each[self.finish(each).argmax()])

    def _grams(self, text: str) -> list[Counter[str]]:
        text = "".join(text.split())
        return [Counter(text[i : i + n] for i in range(len(text) - n + 1)) for n in range(1, self.order + 1)]

    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        predicted, reference, shared = np.moveaxis(sums.reshape(len(sums), self.order, 3), 2, 0)
        used = (predicted > 0) & (reference > 0)  # orders longer than the texts do not count
        orders = np.maximum(used.sum(axis=1), 1)
        precision = np.where(used, shared / np.maximum(predicted, 1), 0).sum(axis=1) / orders
        recall = np.where(used, shared / np.maximum(reference, 1), 0).sum(axis=1) / orders
        weight = self.beta**2
        below = weight * precision + recall
        return np.asarray(self.top * (1 + weight) * precision * recall / np.where(below > 0, below, 1))


def _matches(predicted: list[Counter[str]], reference: list[Counter[str]]) -> list[int]:
    """Counts by order; an order for which the reference is too short does not count against the prediction."""
    counts: list[int] = []
    for own, expected in zip(predicted, reference, strict=True):
        shared = sum(min(count, expected[gram]) for gram, count in own.items() if gram in expected)
        counts += [own.total() if expected else 0, expected.total(), shared]
    return counts


class _WordCharacters(dict[int, str]):
    """A translation table: letters, digits and combining marks stay, every other character becomes a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = character if unicodedata.category(character)[0] in "LNM" else " "
        return self[code]


class RougeWords:
    """The tokenizer of ROUGE for any script: lower case, no punctuation, no stemming.

    For English it gives the words of the rouge-score library's own tokenizer, which only knows the letters a-z.
    """

    def __init__(self) -> None:
        self._table = _WordCharacters()

    def tokenize(self, text: str) -> list[str]:
        """
        >>> RougeWords().tokenize("The 2-line हिन्दी text.")
        ['the', '2', 'line', 'हिन्दी', 'text']
        """
        return text.lower().translate(self._table).split()


class Rouge(Ratio):
    """ROUGE: the mean over rows of the F-measure (0-100) against the best matching reference."""

    top = 100.0
    kind: ClassVar[str]

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        from rouge_score.rouge_scorer import RougeScorer  # imported late: it takes long

        scorer = RougeScorer([self.kind], tokenizer=RougeWords())
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield max(float(scorer.score(text, prediction)[self.kind].fmeasure) for text in references), 1.0


@METRICS.register("rouge1")
class Rouge1(Rouge):
    """ROUGE of single words."""

    kind = "rouge1"


@METRICS.register("rouge2")
class Rouge2(Rouge):
    """ROUGE of pairs of neighbouring words."""

    kind = "rouge2"


@METRICS.register("rougeL")
class RougeL(Rouge):
    """ROUGE of the longest common subsequence of words."""

    kind = "rougeL"


Gram = tuple[str, ...]
Grams = list[Counter[Gram]]
"""The counts of a text's n-grams; one counter for each n."""


@METRICS.register("cider")
class Cider(Metric):
    """CIDEr-D (Vedantam, Zitnick and Parikh 2015), from 0 to 10: the mean over rows, n = 1 .. 4 and references s_j of

        10 exp(-(l(c) - l(s_j))^2 / (2 sigma^2)) min(g(c), g(s_j)) . g(s_j) / (|g(c)| |g(s_j)|)

    g(x): for each n-gram its count times log(rows / rows with a reference that has it); l: symbols of a text. Counts
    are not divided by length, as in the program behind published figures: cosines are the same, and the minimum only
    cuts off repetitions. A single row scores 0, as no n-gram is rare in it. The weights depend on the whole set of
    rows, so this is not a sum over rows.
    """

    top = 10.0
    longest: ClassVar[int] = 4
    sigma: ClassVar[float] = 6.0

    def score(self, rows: Rows) -> float:
        predicted = [self.grams(symbols(text, rows.unit)) for text in rows.predictions]
        references = [[self.grams(symbols(text, rows.unit)) for text in texts] for texts in rows.references]
        weights = InverseDocumentFrequency.of(references)
        return sum(self.row(*row, weights) for row in zip(predicted, references, strict=True)) / len(rows)

    def show(self, value: float) -> str:
        return f"{value:.3f}"

    def grams(self, parts: Sequence[str]) -> Grams:
        """The counts of the n-grams of a text's symbols.

        >>> Cider("cider").grams(["a", "b", "a"])[0]
        Counter({('a',): 2, ('b',): 1})
        """
        starts = [range(len(parts) - n + 1) for n in range(1, self.longest + 1)]
        return [Counter(tuple(parts[i : i + n]) for i in start) for n, start in enumerate(starts, start=1)]

    def row(self, predicted: Grams, references: Sequence[Grams], weights: InverseDocumentFrequency) -> float:
        """CIDEr-D of a single row."""
        each = [self._similarity(predicted, reference, weights) for reference in references]
        return self.top * sum(each) / len(each)

    def _similarity(self, predicted: Grams, reference: Grams, weights: InverseDocumentFrequency) -> float:
        difference = predicted[0].total() - reference[0].total()
        cosines = sum(weights.cosine(own, other) for own, other in zip(predicted, reference, strict=True))
        return exp(-(difference**2) / (2 * self.sigma**2)) * cosines / self.longest


class InverseDocumentFrequency:
    """log(rows / rows whose references have an n-gram): what is in every row weighs nothing."""

    def __init__(self, frequencies: Mapping[Gram, int], rows: int):
        self._frequencies, self._log_rows = frequencies, log(rows)

    @classmethod
    def of(cls, references: Sequence[Sequence[Grams]]) -> InverseDocumentFrequency:
        """Count in how many rows each n-gram occurs."""
        frequencies: Counter[Gram] = Counter()
        for texts in references:
            frequencies.update({gram for text in texts for grams in text for gram in grams})
        return cls(frequencies, len(references))

    def weigh(self, grams: Counter[Gram]) -> dict[Gram, float]:
        """g(x); n-grams of no reference weigh as much as those of a single row."""
        return {gram: count * (self._log_rows - log(self._frequencies.get(gram, 1))) for gram, count in grams.items()}

    def cosine(self, predicted: Counter[Gram], reference: Counter[Gram]) -> float:
        """The cosine of two texts, where repeating an n-gram more often than the reference does not count."""
        own, other = self.weigh(predicted), self.weigh(reference)
        length = _norm(own.values()) * _norm(other.values())
        shared = sum(min(weight, other[gram]) * other[gram] for gram, weight in own.items() if gram in other)
        return shared / length if length else 0.0


def _norm(values: Iterable[float]) -> float:
    return sqrt(sum(value * value for value in values))


class Distinct(Metric):
    """Distinct n-grams over all n-grams of words, in all predictions together.

    Not a sum over rows: an n-gram that occurs in several rows counts once.
    """

    order: ClassVar[int]

    def score(self, rows: Rows) -> float:
        grams = [gram for text in rows.predictions for gram in self._grams(text.split())]
        return len(set(grams)) / len(grams) if grams else 0.0

    def _grams(self, words: list[str]) -> list[tuple[str, ...]]:
        return [tuple(words[i : i + self.order]) for i in range(len(words) - self.order + 1)]


@METRICS.register("distinct1")
class Distinct1(Distinct):
    """Distinct words over all words."""

    order = 1


@METRICS.register("distinct2")
class Distinct2(Distinct):
    """Distinct pairs of neighbouring words over all pairs."""

    order = 2
