"""Rows with equal inputs are references of each other."""

from __future__ import annotations

from seq2see.data.columns import group


def test_distinct_inputs_in_order_with_all_their_references() -> None:
    rows = [
        {"word": "A", "output": "AH"},
        {"word": "B", "output": "B IY"},
        {"word": "A", "output": "EY"},
        {"word": "A", "output": "AH"},
    ]
    found = group(rows)
    assert [question.inputs for question in found] == [{"word": "A"}, {"word": "B"}]
    assert [question.references for question in found] == [["AH", "EY", "AH"], ["B IY"]]
    assert [question.rows for question in found] == [[0, 2, 3], [1]]


def test_all_inputs_count() -> None:
    rows = [{"a": "x", "b": "y", "output": "1"}, {"a": "x", "b": "z", "output": "2"}]
    assert len(group(rows)) == 2


def test_without_outputs_or_without_inputs() -> None:
    assert [question.references for question in group([{"word": "A"}, {"word": "A"}])] == [[]]
    assert len(group([{"output": "same"}, {"output": "same"}])) == 2
