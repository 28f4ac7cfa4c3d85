"""Rows set aside for dev: by the row alone, equal inputs together, not too many."""

from __future__ import annotations

import random
from collections.abc import Sequence

from seq2see.data.split import Split, hold_out, hold_out_tail, row_hash
from tests.data.helpers import error_of

Row = dict[str, str]


def rows(count: int, *, references: int = 1) -> list[Row]:
    return [{"word": f"w{i}", "output": f"{i}/{n}"} for i in range(count) for n in range(references)]


def parted(given: Sequence[Row], *, share: float = 0.05, most: int = 2000) -> tuple[Split, list[Row], list[Row]]:
    split = hold_out(iter(given), names=["word"], share=share, most=most)
    return split, list(split.train(given)), list(split.dev(given))


def test_about_one_in_twenty_and_every_row_on_one_side() -> None:
    given = rows(20_000)
    split, train, dev = parted(given)
    assert 900 < len(dev) < 1100
    assert len(train) + len(dev) == split.rows == 20_000
    assert len(dev) == split.dev_rows
    assert split.note == f"{len(dev):,} of 20,000 rows set aside for dev"


def test_the_order_of_the_table_does_not_matter() -> None:
    given = rows(3000, references=2)
    shuffled = list(given)
    random.Random(1).shuffle(shuffled)
    for most in (2000, 50):
        one, other = parted(given, most=most)[2], parted(shuffled, most=most)[2]
        assert sorted(row["output"] for row in one) == sorted(row["output"] for row in other)


def test_a_row_added_does_not_move_the_others() -> None:
    before = {row["word"] for row in parted(rows(1000))[2]}
    after = {row["word"] for row in parted([*rows(1000), {"word": "new", "output": ""}])[2]}
    assert before == after - {"new"}


def test_equal_inputs_stay_together() -> None:
    _, train, dev = parted(rows(2000, references=3))
    assert dev
    assert not {row["word"] for row in train} & {row["word"] for row in dev}


def test_at_most_so_many() -> None:
    for most in (1, 10, 100):
        split, _, dev = parted(rows(20_000), most=most)
        assert len(dev) == split.dev_rows == most
    assert len(parted(rows(20_000, references=7), most=100)[2]) == 98, "whole groups of seven"
    lowest = sorted(rows(20_000), key=lambda row: row_hash(row, ["word"]))[:100]
    assert {row["word"] for row in parted(rows(20_000), most=100)[2]} == {row["word"] for row in lowest}


def test_at_least_one_where_there_are_two_inputs() -> None:
    for count in (2, 3, 5):
        _, train, dev = parted(rows(count))
        assert len(dev) >= 1
        assert len(train) >= 1


def test_nothing_where_nothing_can_be_or_is_asked_for() -> None:
    same = [{"word": "a", "output": str(n)} for n in range(50)]
    assert parted(same)[0].dev_rows == 0
    assert parted(rows(100), share=0.0)[2] == []
    assert parted(rows(100), most=0)[2] == []
    assert parted(rows(100), most=0)[0].note == "none of 100 rows set aside for dev"


def test_something_is_left_to_train_on() -> None:
    assert len(parted(rows(3), share=0.9999)[1]) >= 1


def test_a_group_that_is_larger_than_the_most_does_not_hide_the_others() -> None:
    given = [{"word": "a", "output": str(n)} for n in range(30_000)] + rows(1000)
    _, train, dev = parted(given, most=20)
    assert 0 < len(dev) <= 20 or {row["word"] for row in dev} == {"a"}
    assert train


def test_the_rule_is_the_same_on_every_machine() -> None:
    assert row_hash({"word": "india"}, ["word"]) == 12163713123017056657
    assert row_hash({"a": "x", "b": "yz"}, ["a", "b"]) != row_hash({"a": "xy", "b": "z"}, ["a", "b"])


def test_the_tail_of_a_text_begins_with_a_line() -> None:
    lines = [f"line {i}" for i in range(1000)]
    tail = hold_out_tail(lambda: lines, share=0.05)
    train, dev = list(tail.train(lines)), list(tail.dev(lines))
    assert train + dev == lines
    assert 40 <= len(dev) <= 60
    assert tail.dev_characters == sum(len(line) + 1 for line in dev)
    assert tail.note == f"the last {tail.dev_characters:,} of {tail.characters:,} characters set aside for dev"


def test_a_text_of_one_line_is_cut_inside_it() -> None:
    text = ["x" * 99 + "y" * 100]
    tail = hold_out_tail(lambda: text, share=0.5)
    assert "".join(tail.train(text)) + "".join(tail.dev(text)) == text[0]
    assert "".join(tail.dev(text)) == "y" * 99
    assert "too short" in error_of(lambda: hold_out_tail(lambda: ["x"], share=0.5))
