from __future__ import annotations

import json
from pathlib import Path

import pytest

from seq2see.errors import UserError
from seq2see.seeing import learning_curve, line_plot

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
