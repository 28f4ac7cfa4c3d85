"""Runs begin, go on, and are never lost by mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import seq2see
from tests.commands import Run

Call = Callable[..., Run]


def test_a_run_says_its_metrics_and_where_the_model_is(call: Call, spelling: Path, pairs: Path, tmp_path: Path) -> None:
    run = call("train", spelling, "--data", pairs, "--out", tmp_path / "run", "--updates", 3, "--seed", 5)
    assert run.code == 0
    assert run.out.startswith("dev exact ")
    assert len(run.lines) == 1
    assert f"seq2see predict {tmp_path / 'run'} INPUT" in run.err
    assert "rows set aside for dev" in run.err
    recipe = seq2see.load(tmp_path / "run").recipe
    assert (recipe.training.updates, recipe.training.seed) == (3, 5)


def test_what_to_try_next_fits_the_model(call: Call, spelling: Path, pairs: Path, tmp_path: Path) -> None:
    arguments = ["train", spelling, "--data", pairs, "--updates", 1]
    assert "seq2see look" in call(*arguments, "--out", tmp_path / "sees").err
    assert "seq2see look" not in call(*arguments, "--out", tmp_path / "blind", "--set", "attention=none").err


def test_json_gives_the_best_report(call: Call, spelling: Path, pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    record = json.loads(call("train", spelling, "--data", pairs, "--out", out, "--updates", 3, "--json").out)
    reports = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert record["model"] == str(out)
    assert record["dev"] in [report["dev"] for report in reports if report["best"]]


def test_a_run_is_not_written_over(call: Call, spelling: Path, pairs: Path, tmp_path: Path) -> None:
    arguments = ["train", spelling, "--data", pairs, "--out", tmp_path / "run", "--updates", 2]
    call(*arguments)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    run = call(*arguments)
    assert run.code == 2
    assert all(word in run.err for word in ("--resume", "--out", "--overwrite"))
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    again = call(*arguments, "--overwrite", "--set", "decoder.size=20")
    assert again.code == 0
    assert seq2see.load(tmp_path / "run").recipe.decoder.size == 20


def test_resuming_by_folder_and_by_name(
    call: Call, spelling: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call("train", spelling, "--data", pairs, "--updates", 2)
    assert (tmp_path / "runs" / "spelling" / "model.safetensors").exists()
    for arguments, updates in ((["runs/spelling"], 4), ([spelling], 6)):
        run = call("train", *arguments, "--resume", "--updates", updates)
        assert run.code == 0, run.err
        reports = (tmp_path / "runs" / "spelling" / "metrics.jsonl").read_text().splitlines()
        assert json.loads(reports[-1])["update"] == updates


def test_resuming_by_the_line_the_run_was_begun_with(call: Call, spelling: Path, pairs: Path, tmp_path: Path) -> None:
    line = ["train", spelling, "--data", pairs, "--columns", "word,spelled", "--out", tmp_path / "run"]
    line += ["--set", "decoder.size=20", "--seed", 4]
    assert call(*line, "--updates", 2).code == 0
    again = call(*line, "--updates", 4, "--resume")
    assert again.code == 0, again.err
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])["update"] == 4


def test_fine_tuning_begins_from_a_model(
    call: Call, speller: Path, spelling: Path, pairs: Path, tmp_path: Path
) -> None:
    arguments = ["train", spelling, "--data", pairs, "--from", speller, "--updates", 1, "--json"]
    started = json.loads(call(*arguments, "--out", tmp_path / "run").out)["dev"]["perplexity"]
    fresh = ["train", spelling, "--data", pairs, "--updates", 1, "--json", "--out", tmp_path / "new"]
    assert started < 0.7 * json.loads(call(*fresh).out)["dev"]["perplexity"]


def test_data_sets_are_found_by_name(
    call: Call, spelling: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tmp_path / "data" / "words"
    words.mkdir(parents=True)
    lines = pairs.read_text("utf-8").splitlines()
    (words / "train.tsv").write_text("\n".join(lines[:180]) + "\n")
    (words / "dev.tsv").write_text("\n".join([lines[0], *lines[180:]]) + "\n")
    monkeypatch.setenv("SEQ2SEE_DATA", str(tmp_path / "data"))
    run = call("train", spelling, "--data", "words", "--out", tmp_path / "run", "--updates", 1)
    assert run.code == 0
    assert "set aside" not in run.err
    report = json.loads(call("evaluate", tmp_path / "run", "--data", "words", "--json").out)
    assert report["rows"] == 21
    wrong = call("train", spelling, "--data", "wrods", "--out", tmp_path / "other")
    assert wrong.code == 2
    assert "did you mean 'words'" in wrong.err


def test_a_replay_takes_no_setting_of_a_run(call: Call, tmp_path: Path) -> None:
    done = call("train", tmp_path, "--replay", "--set", "training.precision=float32", "--resume")
    assert done.code == 2
    assert "--set, --resume" in done.err


@pytest.mark.parametrize("option", ["--confidence", "--pretrain", "--seed", "--studio-port"])
def test_an_option_of_value_0_is_given(call: Call, tmp_path: Path, option: str) -> None:
    others = ["--replay", "--resume"] if option in ("--confidence", "--pretrain") else ["--replay"]
    for other in others:
        done = call("train", tmp_path, other, option, 0)
        assert done.code == 2
        assert f"{option}: cannot be used with {other}" in done.err
