"""`seq2see nearest`: an index of the training rows, made once, and what is nearest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import Commands


@pytest.fixture
def model(speller: Path, tmp_path: Path) -> Path:
    """A copy of the speller, to be written to."""
    shutil.copytree(speller, tmp_path / "speller")
    return tmp_path / "speller"


def test_rows_are_indexed_once_and_searched_often(call: Commands, model: Path, pairs: Path) -> None:
    told = call("nearest", model, "--data", pairs)
    assert (told.code, told.out) == (0, "")
    assert "190 rows with 950 steps indexed" in told.err
    lines = call("nearest", model, "face", "--neighbours", 3).lines
    assert len(lines) == 3
    assert all(len(line.split("\t")) == 3 for line in lines)
    record = json.loads(call("nearest", model, "face", "--step", 1, "--neighbours", 1, "--json").out)
    assert record["symbols"][record["step"]] == record["symbol"]
    assert record["output"].split() == record["symbols"][:-1]
    assert call("nearest", model, "face", "--step", 1, "--target", "F A", "--beam", 2).code == 2
    packed = model.with_suffix(".seq2see")
    assert call("pack", model, "--out", packed).code == 0
    assert "no index" in call("nearest", packed, "face").err, "rows are not published"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "INPUT is missing; or give --data"),
        (["face"], "no index of its training rows"),
        (["face", "--rows", 3], "--rows needs --data"),
        (["face", "--target", "A"], "--target needs --step"),
        (["face", "--beam", 2], "--beam needs --step"),
        (["face", "--neighbours", 0], "--neighbours must be from 1 to"),
        (["--step", 1], "INPUT is missing"),
    ],
)
def test_mistakes_are_told(call: Commands, model: Path, options: list[object], told: str) -> None:
    answer = call("nearest", model, *options)
    assert (answer.code, told in answer.err) == (2, True), answer.err
