"""compare and faithful on the command line: a table, JSON, pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import Run

Call = Callable[..., Run]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compared")


def test_compare_prints_a_table_and_draws(call: Call, spelling: Path, pairs: Path, out: Path) -> None:
    vary = ["--vary", "attention.score=additive,none", "--updates", 3, "--seeds", 2]
    run = call("compare", spelling, "--data", pairs, *vary, "--out", out)
    assert run.code == 0, run.err
    assert "3 updates, 2 seeds each; exact: higher is better, 95 % intervals" in run.out
    assert run.lines[-1].startswith("best: ")
    assert len([line for line in run.err.splitlines() if ", seed " in line]) == 4
    assert (out / "comparison.png").stat().st_size > 5000
    assert "milliseconds per update" in (out / "comparison.svg").read_text("utf-8")
    again = call("compare", spelling, "--data", pairs, *vary, "--out", out, "--json")
    records = [json.loads(line) for line in again.lines]
    assert [record["variant"] for record in records] == [{"attention.score": "additive"}, {"attention.score": "none"}]
    assert sum(record["best"] for record in records) == 1
    assert all(len(record["values"]) == 2 and record["low"] <= record["mean"] <= record["high"] for record in records)
    assert again.err.count("(trained before)") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vary", "attention.score=dot"], "--data"),
        (["--data", "PAIRS"], "nothing varies: give --vary"),
        (["--data", "PAIRS", "--vary", "attention.score=dot", "--seeds", 0], "--seeds must be above 0, got 0"),
        (
            ["--data", "PAIRS", "--vary", "attention.score=adittive"],
            "attention.score: 'adittive' is not allowed (did you mean 'additive'?)",
        ),
    ],
)
def test_compare_refuses(call: Call, spelling: Path, pairs: Path, arguments: list[object], message: str) -> None:
    run = call("compare", spelling, *[pairs if one == "PAIRS" else one for one in arguments])
    assert (run.code, message in run.err) == (2, True), run.err


def test_faithful_as_a_table_as_json_and_as_a_picture(call: Call, speller: Path, pairs: Path, tmp_path: Path) -> None:
    picture = tmp_path / "faithful.svg"
    run = call("faithful", speller, "--data", pairs, "--rows", 6, "--out", picture)
    assert run.code == 0, run.err
    assert "6 rows" in run.out
    drawn = picture.read_text("utf-8")
    assert all(f">{name}<" in drawn for name in ("occlusion", "occlusion, shuffled", "gradient", "gradient, shuffled"))
    page, numbers = tmp_path / "faithful.html", tmp_path / "faithful.json"
    assert call("faithful", speller, "--data", pairs, "--rows", 6, "--out", page).code == 0
    assert "shuffled_low" in page.read_text("utf-8")
    assert call("faithful", speller, "--data", pairs, "--rows", 6, "--places", 3, "--out", numbers).code == 0
    rows = json.loads(numbers.read_text("utf-8"))["rows"]
    assert [(row["measure"], row["tau_low"] <= row["tau"] <= row["tau_high"]) for row in rows] == [
        ("occlusion", True),
        ("gradient", True),
    ]
    record = json.loads(call("faithful", speller, "--data", pairs, "--rows", 6, "--json").out)
    assert [one["measure"] for one in record["agreements"]] == ["occlusion", "gradient"]
    assert all(-1 <= one["tau"]["value"] <= 1 for one in record["agreements"])


def test_faithful_refuses(call: Call, speller: Path, blind: Path, babbler: Path, pairs: Path) -> None:
    for arguments, message in (
        ([blind], "the model has no attention"),
        ([babbler, "--columns", "word"], "a language model reads no input"),
        ([speller, "--rows", -1], "--rows must be 0 or more"),
        ([speller, "--out", "x.gif"], "unknown suffix '.gif'; allowed: .png, .svg, .pdf, .html, .json"),
        ([speller, "--places", 1], "got 1"),
        ([speller, "--theme", "dark"], "--theme needs --out"),
        ([speller, "--width", "84mm"], "--width needs --out"),
        ([f"{speller}+{speller}"], "single model"),
    ):
        run = call("faithful", *arguments, "--data", pairs)
        assert (run.code, message in run.err) == (2, True), run.err
