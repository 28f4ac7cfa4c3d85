"""Alignment error rate: how far where a model looks is from where its words come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from seq2see.evaluation.base import METRICS, Ratio
from seq2see.evaluation.rows import Rows

Pair = tuple[int, int]


@dataclass(frozen=True)
class Aligned:
    """Links of one row, each (place of the input, symbol of the output): those found, beside the sure ones and the
    possible ones (the sure among them)."""

    found: Collection[Pair]
    sure: Collection[Pair]
    possible: Collection[Pair]


@METRICS.register("aer")
class AlignmentErrorRate(Ratio):
    """AER = 1 - (|A & S| + |A & P|) / (|A| + |S|) over all rows, of found A, sure S and possible P (Och and Ney 2003).

    Found are the links from each symbol of the given output to the place most looked at while it was written. A symbol
    with no link at all in the table still has one that is found: null links are not known to attention.
    """

    higher_is_better = False
    cased = False
    of_outputs = False

    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        for row in rows.need("alignments", self.name):
            found, sure, possible = set(row.found), set(row.sure), set(row.possible)
            against = len(found) + len(sure)
            yield against - len(found & sure) - len(found & possible), against
