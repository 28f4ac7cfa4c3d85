"""Maps of vectors: names never cover names or points, and nothing lies outside."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.seeing.labels import short_names
from seq2see.seeing.maps import MAX_LENGTH, SIZE, farthest_first, map_plot, place_names

SHARES = (0.5, 0.25)


@pytest.mark.parametrize("number", [3, 60, 800])
def test_names_cover_neither_names_nor_points(number: int) -> None:
    points = np.random.default_rng(number).uniform(0.3, 6, size=(number, 2))
    boxes = place_names(points, [(0.9, 0.12)] * number, size=SIZE, limit=40)
    assert 3 <= len(boxes) <= 40
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    for box in boxes:
        others = np.delete(points, box.point, axis=0)
        assert not box.covers(others[:, 0], others[:, 1], 0.03)
        assert box.x >= 0
        assert box.x + box.width <= SIZE[0]


def test_outliers_are_named_before_the_crowd() -> None:
    crowd = np.random.default_rng(0).normal(size=(100, 2)) * 0.1
    points = np.vstack([crowd, [[9.0, 9.0], [-9.0, 9.0]]])
    assert set(farthest_first(points)[1:3]) == {100, 101}
    assert sorted(farthest_first(points)) == list(range(102))


def test_a_map_says_what_its_axes_hold() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, -1.0]])
    figure = map_plot(points, ["one", "two $x$", "three"], shares=SHARES, neighbours=[[1], [0], [1]])
    axes = figure.axes[0]
    assert "50 % of the variance" in axes.get_xlabel()
    assert "25 %" in axes.get_ylabel()
    assert [text.get_text() for text in axes.texts] == ["two $x$", "three", "one"]
    assert len(axes.collections[0].get_paths()) == 2
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    assert (right - left) / SIZE[0] == pytest.approx((high - low) / SIZE[1])


def test_many_points_have_lines_where_they_have_names() -> None:
    points = np.random.default_rng(3).normal(size=(300, 2))
    near = [[(number + 1) % 300] for number in range(300)]
    axes = map_plot(points, ["a name"] * 300, shares=SHARES, neighbours=near).axes[0]
    assert len(axes.collections[0].get_paths()) == len(axes.texts)
    assert "300 inputs" in axes.get_title(loc="left")


def test_equal_points_are_drawn() -> None:
    assert map_plot(np.zeros((3, 2)), ["a", "b", "c"], shares=(0.0, 0.0)).axes[0].texts


def test_groups_are_told_apart_without_colour() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, -1.0]])
    axes = map_plot(points, ["a", "b", "c"], shares=SHARES, groups=["x", "y", "x"], theme="dark").axes[0]
    shapes = [one.get_paths()[0].vertices.shape for one in axes.collections[1:]]
    assert shapes[0] != shapes[1]
    with pytest.raises(UserError, match="at most 6 groups"):
        map_plot(np.zeros((7, 2)), ["n"] * 7, shares=SHARES, groups=list("abcdefg"))


def test_names_are_cut_where_they_are_alike() -> None:
    folder = "/home/somebody/recordings/of/the/last/winter"
    assert short_names([f"{folder}/bark.wav", f"{folder}/meow.wav"], MAX_LENGTH) == ["…bark.wav", "…meow.wav"]
    begins, ends = "what do you think is the name of this ", " that we have seen so often by now"
    made = short_names([f"{begins}{one}{ends}" for one in ("dog", "cat")] + ["why"], MAX_LENGTH)
    assert made[2] == "why"
    assert "dog" in made[0]
    assert "cat" in made[1]
    assert max(map(len, made)) <= MAX_LENGTH
    assert short_names(["the same long name of a thing to look at"] * 2, MAX_LENGTH)[0].endswith("look at")
    points = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, -1.0]])
    drawn = map_plot(points, [f"{folder}/{i}.wav" for i in range(3)], shares=SHARES).axes[0].texts
    assert {one.get_text() for one in drawn} == {"…0.wav", "…1.wav", "…2.wav"}
