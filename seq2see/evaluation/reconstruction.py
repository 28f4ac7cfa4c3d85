"""Metrics of autoencoders: how much of a sequence comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from seq2see.evaluation.base import METRICS, Ratio
from seq2see.evaluation.rows import Rows, symbols


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
