"""Alignment error rate against numbers worked out by hand."""

from __future__ import annotations

import pytest

from seq2see.errors import UserError
from seq2see.evaluation import Rows, measure
from seq2see.evaluation.metrics import Aligned, lookup

RIGHT = Aligned([(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1)])
HALF = Aligned([(0, 0), (0, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1)])
POSSIBLE = Aligned([(0, 0), (0, 1)], [(0, 0)], [(0, 0), (0, 1)])
UNLINKED = Aligned([(0, 0), (2, 1)], [], [])


def aer(*rows: Aligned) -> float:
    nothing = [""] * len(rows)
    return measure(["aer"], Rows(nothing, [[""]] * len(rows), alignments=list(rows)))["aer"]


def test_rates() -> None:
    assert aer(RIGHT) == 0
    assert aer(HALF) == pytest.approx(1 - (1 + 1) / (2 + 2))
    assert aer(POSSIBLE) == pytest.approx(1 - (1 + 2) / (2 + 1)), "a possible link is no error"
    assert aer(UNLINKED) == 1
    assert aer(RIGHT, HALF, UNLINKED) == pytest.approx(1 - (2 + 2 + 1 + 1) / (4 + 4 + 2)), "over all rows, not a mean"


def test_less_is_better_and_letters_do_not_count() -> None:
    assert not lookup("aer").higher_is_better
    with pytest.raises(UserError, match="does not look at letters"):
        lookup("aer_lc")
    with pytest.raises(UserError, match="metric 'aer' needs alignments"):
        measure(["aer"], Rows(["a"], [["a"]]))
