"""Plots: lines, learning curves, intervals, reconstructions, the comparison with PCA."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.seeing import Column, Row, interval_plot, learning_curve, line_plot, reconstruction_sheet
from seq2see.seeing.plots import pca_comparison_plot

X = [1.0, 2.0, 3.0]
LABELS = {"xlabel": "length", "ylabel": "exact"}


def test_lines_differ_in_more_than_colour_and_bands_are_drawn(tmp_path: Path) -> None:
    series = {"attention": (X, X, [0, 1, 2], [2, 3, 4]), "none": (X, [3, 2, 1])}
    figure = line_plot(series, **LABELS, title="By length", path=tmp_path / "a" / "lines.svg")
    (axes,) = figure.axes
    first, second = axes.lines
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert first.get_marker() != second.get_marker()
    assert len(axes.collections) == 1
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["attention", "none"]
    assert ">By length<" in (tmp_path / "a" / "lines.svg").read_text(encoding="utf-8")


def test_series_that_do_not_fit_are_named() -> None:
    with pytest.raises(UserError, match=r"series 'a' must be .*lengths: 3, 2"):
        line_plot({"a": (X, [1.0, 2.0])}, **LABELS)
    with pytest.raises(UserError, match="no series"):
        line_plot({}, **LABELS)
    with pytest.raises(UserError, match=r"unknown suffix '\.html'; allowed: \.png, \.svg"):
        line_plot({"a": (X, X)}, **LABELS, path="lines.html")


def test_a_learning_curve_is_read_from_the_metrics_of_a_run(tmp_path: Path) -> None:
    lines = [{"update": 1, "loss": 3.0}, {"update": 2, "dev": {"exact": 0.1}}, {"update": 3, "dev": {"exact": 0.4}}]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (line,) = learning_curve(path, measure="dev.exact").axes[0].lines
    assert list(line.get_xdata()) == [2, 3]
    assert list(line.get_ydata()) == [0.1, 0.4]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"update": 9, "dev": {"exact": 0.1}, "averaged": 5}\n')
    (mean,) = learning_curve(path, measure="dev.exact").axes[0].lines
    assert list(mean.get_ydata()) == list(line.get_ydata())
    both = learning_curve({"one": path, "two": path}, measure="dev.exact")
    assert len(both.axes[0].lines) == 2


def test_what_is_wrong_with_metrics_is_said(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with pytest.raises(UserError, match="cannot read"):
        learning_curve(path, measure="loss")
    path.write_text('{"update": 1, "loss": 3.0}\n{"upd\n')
    with pytest.raises(UserError, match="line 2: not JSON"):
        learning_curve(path, measure="loss")
    path.write_text('{"update": 1, "loss": 3.0}\n')
    with pytest.raises(UserError, match="no line has both 'bleu' and 'update'; numbers found: loss, update"):
        learning_curve(path, measure="bleu")


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


def test_a_sheet_has_a_cell_for_each_picture(tmp_path: Path) -> None:
    given = [np.full((4, 4), share) for share in (0.0, 0.5, 1.5)]
    made = [np.zeros((4, 4, 3), dtype=np.uint8)] * 3
    figure = reconstruction_sheet({"given": given, "made": made}, title="t", path=tmp_path / "sheet.png")
    assert len(figure.axes) == 6
    assert (tmp_path / "sheet.png").stat().st_size > 500
    drawn = [axes.images[0].get_array().max() for axes in figure.axes]
    assert drawn == [0.0, 0.5, 1.0, 0.0, 0.0, 0.0]


def test_rows_of_different_lengths_and_strange_shapes_are_refused() -> None:
    with pytest.raises(UserError, match="a 1, b 2"):
        reconstruction_sheet({"a": [np.zeros((2, 2))], "b": [np.zeros((2, 2))] * 2})
    with pytest.raises(UserError, match=r"got \(4,\)"):
        reconstruction_sheet({"a": [np.zeros(4)]})


@pytest.mark.parametrize(
    ("given", "expected"),
    [([0.0, 4.0, 8.0, 16.0], [0, 0.25, 0.5, 1]), ([0.0, 0.25, 0.5, 0.75], [0, 0.25, 0.5, 0.75])],
)
def test_pictures_are_drawn_in_the_range_of_what_was_given(given: list[float], expected: list[float]) -> None:
    errors = Column("mean squared error", [Row("autoencoder", 1.0, 0.9, 1.1)])
    rows = {"given": [np.array(given)], "autoencoder": [np.array(given) * 2]}
    figure = pca_comparison_plot(errors, rows, shape=(2, 2))
    drawn = [axes.images[0].get_array() for part in figure.subfigs for axes in part.axes if axes.images]
    assert np.asarray(drawn[0]).ravel().tolist() == pytest.approx(expected)
    assert np.asarray(drawn[1]).max() == 1  # what lies beyond is white
