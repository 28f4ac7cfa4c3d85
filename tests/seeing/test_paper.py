"""Figures for print: exact widths, fonts of a given size, PDF."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.text import Text
from PIL import Image

from seq2see.errors import UserError
from seq2see.looks import Looks
from seq2see.seeing import Column, Row, interval_plot, line_plot, plot
from seq2see.seeing.charts import Chart
from seq2see.seeing.figure import DPI, PRINT_DPI
from seq2see.seeing.maps import map_plot
from seq2see.seeing.paper import Paper, parse_length

MM = 1 / 25.4


def looks_of(inputs: list[str], outputs: list[str], *, heads: int = 0) -> Looks:
    shape = (heads, len(outputs), len(inputs)) if heads else (len(outputs), len(inputs))
    weights = np.random.default_rng(1).dirichlet(np.ones(len(inputs)), shape[:-1]).astype(np.float32)
    return Looks(maps={"source": weights}, inputs={"source": inputs}, outputs=outputs)


WORDS = [f"{'extraordinarily' if number == 4 else 'word'}{number}" for number in range(14)]
LOOKS = {
    "letters": looks_of(list("india"), [*"abcdef", "<eos>"]),
    "words": looks_of(WORDS, [*(word * 3 for word in WORDS), "<eos>"]),
    "long": looks_of([f"w{number}" for number in range(90)], [f"o{number}" for number in range(20)]),
    "heads": looks_of(["a", "dog", "runs", "in", "the", "park"], ["ein", "Hund", "rennt"], heads=5),
    "label": looks_of(WORDS * 3, ["positive"]),
}


def page_size(path: Path) -> tuple[float, float]:
    """Width and height of the only page in inches."""
    found = re.findall(rb"/MediaBox \[ ?0 0 ([0-9.]+) ([0-9.]+) ?\]", path.read_bytes())
    ((width, height),) = found
    return float(width) / 72, float(height) / 72


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("width", [60, 84, 174])
def test_looks_have_the_width_that_is_asked_for(name: str, width: int, tmp_path: Path) -> None:
    looks = LOOKS[name]
    path = looks.save(tmp_path / "look.pdf", width=f"{width}mm", font_size=8, title="a title " * 12, map="source")
    assert page_size(path)[0] == pytest.approx(width * MM, abs=0.002)
    figure = plot(looks, paper=Paper(width * MM, 8.0), title="a title " * 12, map="source")
    inside = figure.bbox.padded(1)
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]
    assert all(inside.contains(*corner) for text in texts for corner in text.get_window_extent().corners())


@pytest.mark.parametrize(("name", "least"), [("letters", 8), ("heads", 7.5), ("words", 6), ("long", 5.4)])
def test_labels_have_the_size_that_is_asked_for(name: str, least: float) -> None:
    """Those of many columns are smaller, down to a size that can be read."""
    figure = plot(LOOKS[name], paper=Paper(84 * MM, 8.0), title="title", map="source")
    sizes = {text.get_text(): text.get_fontsize() for text in figure.findobj(Text) if isinstance(text, Text)}
    assert sizes["title"] == pytest.approx(8)
    assert 5.9 <= sizes["attention weight"] <= 8
    symbol = LOOKS[name].inputs["source"][0]
    assert least - 1e-6 <= sizes[symbol] <= 8 + 1e-6


def test_heads_stand_side_by_side_as_far_as_they_fit() -> None:
    narrow, wide = (plot(LOOKS["heads"], map="source", paper=Paper(width * MM, 8.0)) for width in (84, 174))
    assert narrow.get_size_inches()[1] > wide.get_size_inches()[1]
    assert len({round(axes.get_position().x0, 3) for axes in narrow.axes[:-1]}) == 2


def test_a_font_size_alone_scales_the_figure() -> None:
    natural, double = plot(LOOKS["letters"]), plot(LOOKS["letters"], paper=Paper(None, 19.0))
    ratio = double.get_size_inches() / natural.get_size_inches()
    assert ratio[0] == pytest.approx(2, abs=0.3)


def test_other_formats_have_that_width_too(tmp_path: Path) -> None:
    looks = LOOKS["letters"]
    with Image.open(looks.save(tmp_path / "look.png", width="84mm")) as picture:
        assert picture.width == pytest.approx(84 * MM * PRINT_DPI, abs=2)
    svg = looks.save(tmp_path / "look.svg", width="8.4cm").read_text("utf-8")
    (points,) = re.findall(r'<svg[^>]* width="([0-9.]+)pt"', svg)
    assert float(points) == pytest.approx(84 * MM * 72, abs=0.1)


def test_a_pdf_has_its_fonts_inside_and_no_time(tmp_path: Path) -> None:
    content = LOOKS["letters"].save(tmp_path / "a.pdf").read_bytes()
    assert content == LOOKS["letters"].save(tmp_path / "b.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"CreationDate" not in content


CURVE = ([1.0, 2.0, 3.0], [0.1, 0.5, 0.7])


def _lines(theme: str) -> Any:
    title = "A title that is far longer than a column of a paper can hold in one line"
    return line_plot({"one": CURVE, "two": CURVE}, xlabel="updates", ylabel="exact on dev", title=title, theme=theme)


def _intervals(theme: str) -> Any:
    rows = [Row("occlusion", 0.5, 0.4, 0.6, strong=True), Row("occlusion, shuffled", 0.0, -0.1, 0.1)]
    label = "Kendall's tau with attention, 95 % interval over 200 rows (0: chance, 1: the same order)"
    return interval_plot([Column(label, rows, line=0.0, width=1.3)], title="Is attention faithful?", theme=theme)


def _map(theme: str, width: float | None = None) -> Any:
    points = np.random.default_rng(2).normal(size=(30, 2))
    groups = ["noun", "verb"] * 15
    return map_plot(points, [f"n{n}" for n in range(30)], shares=(0.4, 0.2), groups=groups, theme=theme, width=width)


CHARTS = {
    "lines": Chart("curve", "lines", {}, [], _lines),
    "intervals": Chart("faithful", "intervals", {}, [], _intervals),
    "map": Chart("map", "map", {}, [], _map, draw_sized=_map),
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_have_the_width_that_is_asked_for(name: str, tmp_path: Path) -> None:
    chart = CHARTS[name]
    assert page_size(chart.save(tmp_path / "c.pdf", width="84mm"))[0] == pytest.approx(84 * MM, abs=0.002)
    figure = chart._figure("light", Paper(84 * MM, 8.0))
    figure.draw_without_rendering()
    inside = figure.bbox.padded(1)
    (axes,) = figure.axes
    for text in (axes._left_title, axes.xaxis.label, axes.yaxis.label):  # type: ignore[attr-defined]
        if text.get_text():
            assert all(inside.contains(*corner) for corner in text.get_window_extent().corners()), text
    assert axes.xaxis.label.get_fontsize() == pytest.approx(8)


def test_lengths() -> None:
    lengths = ["84mm", "8.4cm", " 8.4 cm", "238.11pt", "3.30708in"]
    assert all(math.isclose(parse_length(text), 84 * MM, rel_tol=1e-4) for text in lengths)


@pytest.mark.parametrize("text", ["84", "mm", "84px", "-84mm", "0mm", "1e3mm", "nan mm", "84mm!", "9999cm", "١mm", ""])
def test_lengths_that_are_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--width"):
        LOOKS["letters"].save(tmp_path / "look.pdf", width=text)


def test_what_has_no_width(tmp_path: Path) -> None:
    for suffix in ("html", "json"):
        with pytest.raises(UserError, match="--width"):
            LOOKS["letters"].save(tmp_path / f"look.{suffix}", width="84mm")
        with pytest.raises(UserError, match="--font-size"):
            CHARTS["lines"].save(tmp_path / f"chart.{suffix}", font_size=8)
    for size in (0, 3.9, 41, math.nan):
        with pytest.raises(UserError, match="--font-size"):
            LOOKS["letters"].save(tmp_path / "look.pdf", font_size=size)


def test_a_title_with_marks_of_direction_is_drawn_as_paths(tmp_path: Path) -> None:
    """As text, matplotlib would give each mark the width of a space."""

    def shown(title: str) -> int:
        with rc_context({"pdf.compression": 0}):
            return LOOKS["letters"].save(tmp_path / "a.pdf", title=title).read_bytes().count(b" TJ")

    assert shown("india") == shown("\u200eindia") + 1


def test_pictures_for_print_have_more_dots(tmp_path: Path) -> None:
    for suffix, width in ((".png", "84mm"), (".png", None)):
        with Image.open(LOOKS["letters"].save(tmp_path / f"a{suffix}", width=width)) as image:
            assert round(image.info["dpi"][0]) == (PRINT_DPI if width else DPI)
