"""Values with intervals: drawn where they are, told apart without colour."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2see.errors import UserError
from seq2see.seeing import Column, Row, interval_plot

ROWS = [Row("dot", 0.5, 0.4, 0.6, (0.45, 0.55)), Row("additive", 0.7, 0.6, 0.8, strong=True), Row("none", 0.1)]


def test_rows_stand_in_the_order_given_each_with_its_interval(tmp_path: Path) -> None:
    time = [Row(row.name, 20.0) for row in ROWS]
    columns = [Column("exact", ROWS, line=0.7), Column("milliseconds", time, from_zero=True, width=0.5)]
    paths = [tmp_path / "a" / "plot.png", tmp_path / "plot.svg"]
    figure = interval_plot(columns, title="Scores", paths=paths)
    quality, cost = figure.axes
    assert [label.get_text() for label in quality.get_yticklabels()] == ["dot", "additive", "none"]
    assert quality.yaxis_inverted()
    spans = [list(line.get_xdata()) for line in quality.lines if line.get_marker() == "|"]
    assert spans == [[0.4, 0.6], [0.6, 0.8]]
    faces = [line.get_markerfacecolor() == line.get_color() for line in quality.lines if line.get_marker() == "o"]
    assert faces == [False, True, False]
    assert (quality.get_xlabel(), cost.get_xlabel()) == ("exact", "milliseconds")
    assert cost.get_xlim()[0] == 0
    assert all(path.stat().st_size > 1000 for path in paths)
    assert ">additive<" in paths[1].read_text("utf-8")


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(UserError, match="no rows"):
        interval_plot([Column("exact", [])])
    with pytest.raises(ValueError, match="same rows"):
        interval_plot([Column("exact", ROWS), Column("time", ROWS[:2])])


def test_the_axis_ends_where_values_do() -> None:
    figure = interval_plot([Column("exact", [Row("dot", 0.1, 0.0, 0.4), Row("none", 0.0)], bounds=(0.0, 1.0))])
    assert figure.axes[0].get_xlim()[0] == 0.0
    figure = interval_plot([Column("exact", [Row("dot", 0.9, 0.7, 1.0)], bounds=(0.0, 1.0))])
    assert figure.axes[0].get_xlim()[1] == 1.0
