"""Folds: no row is tested by a model that saw its group, every row is tested once, folds are of about equal size."""

from __future__ import annotations

import random
from typing import Any

import pytest

from seq2see.data.folds import Fold, deal, folds_by_group, folds_by_row
from seq2see.errors import UserError

OPTIONS: dict[str, Any] = {"names": ["source"], "share": 0.1, "most": 50}


def made(count: int, groups: int, *, seed: int = 1) -> tuple[list[dict[str, str]], list[str]]:
    """Rows of few different inputs, each of some group; the first groups are larger."""
    draw = random.Random(seed)
    rows = [{"source": str(draw.randrange(count // 2))} for _ in range(count)]
    chosen = [f"g{min(draw.randrange(groups), draw.randrange(groups))}" for _ in range(count)]
    return rows, chosen


def check_cover(folds: list[Fold], count: int) -> None:
    assert sorted(row for fold in folds for row in fold.test) == list(range(count))
    for fold in folds:
        assert fold.train
        assert fold.dev
        assert sorted([*fold.train, *fold.dev, *fold.test]) == sorted({*fold.train, *fold.dev, *fold.test})


@pytest.mark.parametrize(("groups", "folds", "dev_from"), [(4, None, None), (9, None, None), (30, 6, "group")])
def test_no_group_is_on_two_sides(groups: int, folds: int | None, dev_from: Any) -> None:
    rows, group_of = made(400, groups)
    dealt = folds_by_group(rows, group_of, column="speaker", folds=folds, dev_from=dev_from, **OPTIONS)
    check_cover(dealt, 400)
    assert len(dealt) == (folds or groups)
    group_for_dev = dev_from == "group" or groups >= 8
    for fold in dealt:
        tested, dev, train = ({group_of[row] for row in part} for part in (fold.test, fold.dev, fold.train))
        assert tested == set(fold.groups)
        assert not tested & (dev | train)
        assert bool(dev & train) is not group_for_dev
        assert all(group_of[row] == group for group, numbers in fold.groups.items() for row in numbers)
        if not group_for_dev:  # rows are set aside by their inputs
            assert not {rows[row]["source"] for row in fold.dev} & {rows[row]["source"] for row in fold.train}


def test_equal_inputs_stay_together_in_folds_of_rows() -> None:
    rows, _ = made(300, 3)
    dealt = folds_by_row(rows, folds=4, **OPTIONS)
    check_cover(dealt, 300)
    for fold in dealt:
        inputs = [{rows[row]["source"] for row in part} for part in (fold.test, fold.dev, fold.train)]
        assert not inputs[0] & inputs[1]
        assert not inputs[0] & inputs[2]
        assert not inputs[1] & inputs[2]
    sizes = [len(fold.test) for fold in dealt]
    assert max(sizes) - min(sizes) <= 1


def test_folds_are_balanced_and_do_not_depend_on_order() -> None:
    sizes = {f"s{number}": 1 + number % 7 for number in range(40)}
    dealt = deal(sizes, 6)
    totals = [sum(sizes[key] for key in part) for part in dealt]
    assert max(totals) - min(totals) <= 1
    shuffled = list(sizes)
    random.Random(3).shuffle(shuffled)
    assert deal({key: sizes[key] for key in shuffled}, 6) == dealt
    assert deal(sizes, 6)[0] != deal({f"t{key}": size for key, size in sizes.items()}, 6)[0]


@pytest.mark.parametrize(
    ("groups", "given", "message"),
    [
        (["a"] * 10, {}, "column 'who' has one value"),
        (["a", "b"] * 5, {"folds": 3}, "folds 3: allowed: 2 to 2"),
        (["a", "b"] * 5, {"folds": 1}, "folds 1: allowed"),
        (["a", "b"] * 5, {"dev_from": "group"}, "at least three folds"),
    ],
)
def test_what_cannot_be_left_out_is_refused(groups: list[str], given: dict[str, Any], message: str) -> None:
    rows = [{"source": str(number)} for number in range(10)]
    with pytest.raises(UserError, match=message):
        folds_by_group(rows, groups, column="who", **{**OPTIONS, **given})
    with pytest.raises(UserError, match="folds 11: allowed: 2 to 10"):
        folds_by_row(rows, folds=11, **OPTIONS)
