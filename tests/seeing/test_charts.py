"""Charts: the same numbers in every format."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.seeing import line_plot
from seq2see.seeing.charts import Chart

ROWS = [{"model": "<b>", "x": 1, "y": 0.5}, {"model": "b", "x": 2, "y": math.nan, "near": ["p", "q"]}]


def draw(theme: str) -> Any:
    return line_plot({"a": ([1, 2], [3, 4])}, xlabel="x", ylabel="y", theme=theme)


CHART = Chart("lengths", "A & B", {"metric": "exact"}, ROWS, draw)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".json"])
def test_every_format(tmp_path: Path, suffix: str) -> None:
    path = CHART.save(tmp_path / "deep" / f"x{suffix}")
    assert path.stat().st_size > 100
    assert path.read_bytes() == CHART.save(tmp_path / f"again{suffix}").read_bytes()


def test_json_has_no_numbers_that_are_none(tmp_path: Path) -> None:
    told = json.loads(CHART.save(tmp_path / "x.json").read_text("utf-8"))
    assert told["rows"][1] == {"model": "b", "x": 2, "y": None, "near": ["p", "q"]}
    assert (told["figure"], told["metric"]) == ("lengths", "exact")


def test_the_page_escapes_and_loads_nothing(tmp_path: Path) -> None:
    page = CHART.save(tmp_path / "x.html").read_text("utf-8")
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "<title>A &amp; B</title>" in page
    assert "script" not in page
    assert page.count("data:image/svg+xml") == 2
    assert CHART.save(tmp_path / "y.html", theme="dark").read_text("utf-8").count("data:image/svg+xml") == 1


def test_as_text_and_in_notebooks() -> None:
    assert CHART.text() == "model\tx\ty\tnear\n<b>\t1\t0.5\t\nb\t2\t\tp; q\n"
    assert "&lt;b&gt;" in CHART._repr_html_()


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"did you mean '\.png'"):
        CHART.save(tmp_path / "x.pngg")
