from __future__ import annotations

import pytest

from seq2see.evaluation import Rows, compute
from seq2see.evaluation.metrics import MacroF1


def test_accuracy_and_macro_f1_by_hand() -> None:
    predictions = ["yes", "yes", "no", "maybe", "no", "yes"]
    references = [["yes"], ["no"], ["no"], ["no"], ["yes"], ["yes"]]
    found = compute(["accuracy", "macro_f1"], predictions, references)
    # yes: 2 right, said 3, true 3; no: 1 right, said 2, true 3; maybe: said 1, never true
    assert found["accuracy"] == pytest.approx(3 / 6)
    assert found["macro_f1"] == pytest.approx((2 * 2 / 6 + 2 * 1 / 5 + 0) / 3)


def test_a_constant_answer_has_high_accuracy_and_low_macro_f1_on_skewed_labels() -> None:
    found = compute(["accuracy", "macro_f1"], ["a"] * 10, [["a"]] * 9 + [["b"]])
    assert found == pytest.approx({"accuracy": 0.9, "macro_f1": (2 * 9 / 19) / 2})


def test_any_reference_is_right() -> None:
    found = compute(["accuracy", "macro_f1"], ["a", "b", "c"], [["b", "a"], ["b"], ["a", "b"]])
    # the last row counts as a true 'a' that was missed
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["macro_f1"] == pytest.approx((2 * 1 / 3 + 1 + 0) / 3)


def test_a_draw_without_a_label_is_judged_on_the_labels_it_has() -> None:
    metric = MacroF1("macro_f1")
    statistics = metric.statistics(Rows(["a", "b", "c"], [["a"], ["a"], ["c"]]))
    assert metric.finish(statistics[[0, 2]].sum(axis=0, keepdims=True)) == pytest.approx([1.0])
    assert metric.finish(statistics[[0, 1]].sum(axis=0, keepdims=True)) == pytest.approx([(2 / 3 + 0) / 2])
