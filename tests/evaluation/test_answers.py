from __future__ import annotations

import pytest

from seq2see.evaluation import compute


def test_answers_are_compared_without_case_punctuation_and_articles() -> None:
    assert compute(["em", "f1"], ["The  Eiffel Tower."], [["eiffel tower"]]) == {"em": 1.0, "f1": 1.0}
    assert compute(["em"], ["theatre"], [["atre"]]) == {"em": 0.0}


def test_f1_by_hand_takes_the_best_reference() -> None:
    found = compute(["em", "f1"], ["in the old town", "Paris"], [["Rome", "old town hall"], ["London"]])
    assert found["em"] == 0.0
    # {in, old, town} against {old, town, hall}: two in common of three each
    assert found["f1"] == pytest.approx((2 / 3 + 0) / 2)


def test_repeated_words_count_as_often_as_they_stand_in_both() -> None:
    assert compute(["f1"], ["go go go"], [["go go now"]])["f1"] == pytest.approx(2 * 2 / 6)


def test_empty_answers() -> None:
    assert compute(["em", "f1"], ["", "", "x"], [[""], ["x"], [""]]) == pytest.approx({"em": 1 / 3, "f1": 1 / 3})


def test_punctuation_of_other_scripts() -> None:
    assert compute(["em"], ["«दिल्ली।»"], [["दिल्ली"]]) == {"em": 1.0}
