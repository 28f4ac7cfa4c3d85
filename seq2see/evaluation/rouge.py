"""ROUGE for summaries, in any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import ClassVar

from seq2see.evaluation.base import METRICS, Ratio
from seq2see.evaluation.rows import Rows


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
