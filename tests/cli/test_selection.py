"""crossval and tune on the command line: tables, JSON, pictures, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import Run
from tests.system.small import write_table

Call = Callable[..., Run]


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of two speakers, a folder with a dev table beside it."""
    folder = tmp_path_factory.mktemp("spoken")
    rows = [
        {"word": a + b + c, "spelled": c + b + a, "who": "xy"[number % 2]}
        for number, (a, b, c) in enumerate((a, b, c) for a in "abcd" for b in "abc" for c in "ab")
    ]
    write_table(folder / "dev.csv", rows[:4])
    return write_table(folder / "train.csv", rows)


def test_crossval_prints_a_table_and_draws(call: Call, spelling: Path, spoken: Path, tmp_path: Path) -> None:
    command = ["crossval", spelling, "--data", spoken.parent, "--columns", "word,spelled", "--by", "who"]
    command += ["--updates", 2, "--out", tmp_path]
    run = call(*command)
    assert run.code == 0, run.err
    assert "each value of 'who' held out in turn" in run.out
    assert "dev.csv is not used" in run.err
    assert (tmp_path / "crossval.png").stat().st_size > 5000
    again = call(*command, "--json")
    record = json.loads(again.out)
    assert [(group["group"], group["rows"]) for group in record["groups"]] == [("x", 12), ("y", 12)]
    assert record == json.loads((tmp_path / "crossval.json").read_text("utf-8"))
    assert again.err.count("(trained before)") == 2


def test_tune_prints_a_report_and_draws(call: Call, spelling: Path, spoken: Path, tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    space.write_text("training.clip: {choices: [1.0, 2.0]}\n", "utf-8")
    command = ["tune", spelling, "--data", spoken, "--columns", "word,spelled", "--minutes", 10, "--space", space]
    command += ["--set", "training.updates=2", "--trials", 1, "--out", tmp_path / "out"]
    run = call(*command)
    assert run.code == 0, run.err
    assert "optimistic" in run.lines[-1]
    assert (tmp_path / "out" / "tuning.png").stat().st_size > 5000
    assert (call(*command).code, call(*command, "--resume").code) == (2, 0)
    record = json.loads(call(*command, "--resume", "--json").out)
    assert len(record["trials"]) == 1
    assert record["best"]["settings"] == {"training.clip": 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crossval", "RECIPE"], "--data"),
        (["crossval", "RECIPE", "--data", "T", "--by", "speaker"], "--by speaker: no column 'speaker'"),
        (["crossval", "document-classification", "--data", "T", "--by", "spelled"], "'spelled' is the output"),
        (["crossval", "RECIPE", "--data", "T", "--seeds", 0], "--seeds must be above 0, got 0"),
        (["crossval", "RECIPE", "--data", "T", "--dev", "T"], "--dev"),
        (["compare", "RECIPE", "--data", "T", "--vary", "decoder.layers=1,2", "--dev-from", "rows"], "no effect"),
        (["tune", "RECIPE", "--data", "T"], "no minutes: give --minutes"),
        (["tune", "RECIPE", "--minutes", 1], "no data: give --data"),
        (["tune", "RECIPE", "--data", "T", "--minutes", 1, "--trials", 0], "--trials must be above 0"),
        (["tune", "RECIPE", "--data", "T", "--minutes", 1, "--space", "no.yaml"], "no.yaml: missing"),
    ],
)
def test_mistakes_are_refused(
    call: Call, spelling: Path, spoken: Path, tmp_path: Path, arguments: list[object], message: str
) -> None:
    given = [{"RECIPE": spelling, "T": spoken}.get(str(one), one) for one in arguments]
    run = call(*given, "--columns", "word,spelled", "--out", tmp_path / "out")
    assert (run.code, message in run.err) == (2, True), run.err
    assert not (tmp_path / "out").exists()
