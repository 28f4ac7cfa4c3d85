"""Metrics by n-grams: BLEU and chrF (as sacrebleu defines them), ROUGE, CIDEr-D, distinct-n."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, log, sqrt
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from seq2see.evaluation.base import METRICS, Metric, Ratio, RowMetric, Rows, symbols

# ---------------- Translation metrics as sacrebleu defines them, split into what a row adds and what the ...


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


# ---------------- ROUGE for summaries, in any script


class _WordCharacters(dict[int, str]):
    """Letters, digits and the marks that go with them stay; every other character becomes a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = character if unicodedata.category(character)[0] in "LNM" else " "
        return self[code]


class RougeWords:
    """ROUGE's words: lower case, no punctuation, no stemming.

    For English these are the words of the rouge-score library's own tokenizer, which knows the letters a-z alone
    and would find no word in Hindi.
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
    """Mean over rows of the F-measure (0-100) against the reference that suits best."""

    top = 100.0
    kind: ClassVar[str]

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        from rouge_score.rouge_scorer import RougeScorer  # late: slow to import, and seldom needed

        scorer = RougeScorer([self.kind], tokenizer=RougeWords())
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield max(float(scorer.score(text, prediction)[self.kind].fmeasure) for text in references), 1.0


@METRICS.register("rouge1")
class Rouge1(Rouge):
    """Words shared."""

    kind = "rouge1"


@METRICS.register("rouge2")
class Rouge2(Rouge):
    """Pairs of neighbouring words shared."""

    kind = "rouge2"


@METRICS.register("rougeL")
class RougeL(Rouge):
    """Longest common subsequence of words."""

    kind = "rougeL"


# ---------------- CIDEr-D (Vedantam, Zitnick & Parikh 2015)

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


# ---------------- How varied outputs are


class Distinct(Metric):
    """Different n-grams of words over all n-grams of words, in all predictions together.

    Not a function of sums over rows: a row adds nothing with an n-gram that another row has said.
    """

    order: ClassVar[int]

    def score(self, rows: Rows) -> float:
        grams = [gram for text in rows.predictions for gram in self._grams(text.split())]
        return len(set(grams)) / len(grams) if grams else 0.0

    def _grams(self, words: list[str]) -> list[tuple[str, ...]]:
        return [tuple(words[i : i + self.order]) for i in range(len(words) - self.order + 1)]


@METRICS.register("distinct1")
class Distinct1(Distinct):
    """Different words."""

    order = 1


@METRICS.register("distinct2")
class Distinct2(Distinct):
    """Different pairs of neighbouring words."""

    order = 2
