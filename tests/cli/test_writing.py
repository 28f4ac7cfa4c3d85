"""`--to`: the table of `--file` with the predictions in columns of their own, never written over it by chance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import seq2see
from seq2see.pipeline.prediction_columns import columns_for
from tests.commands import Run

Call = Callable[..., Run]


@pytest.mark.parametrize("taken", ["prediction", "score", "prediction_2", "score_3"])
def test_one_column_of_that_name_renames_them_all(taken: str) -> None:
    names = columns_for(3, ["word", taken])
    assert names[0] == ("prediction_run2", "score_run2")
    assert names[2] == ("prediction_run2_3", "score_run2_3")
    assert columns_for(1, ["prediction", "score_run2"]) == [("prediction_run3", "score_run3")]


def test_ranks_that_are_not_asked_for_take_no_names() -> None:
    assert columns_for(1, ["word", "prediction_2"]) == [("prediction", "score")]


def test_columns_of_the_table_are_kept_and_it_is_said(call: Call, speller: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("word\tprediction\tscore\nabcd\tmine\t7\n")
    run = call("predict", speller, "--file", tmp_path / "in.tsv", "--to", tmp_path / "out.jsonl", "--n-best", 2)
    row = json.loads((tmp_path / "out.jsonl").read_text())
    best = seq2see.load(speller).predict("abcd", n_best=2)
    assert row == {
        "word": "abcd",
        "prediction": "mine",
        "score": "7",
        "prediction_run2": best.text,
        "score_run2": pytest.approx(best.score),
        "prediction_run2_2": best.alternatives[0].text,
        "score_run2_2": pytest.approx(best.alternatives[0].score),
    }
    assert "1 prediction in " in run.err
    assert "columns prediction_run2, score_run2, " in run.err
    assert "prediction, score)" in run.err


@pytest.mark.parametrize("kind", ["path", "link", "hard link", "folder"])
def test_the_table_that_is_read_is_not_written_over(call: Call, speller: Path, tmp_path: Path, kind: str) -> None:
    table, same = tmp_path / "in.tsv", tmp_path / "same.tsv"
    table.write_text("word\nabcd\n")
    if kind == "link":
        same.symlink_to(table)
    elif kind == "hard link":
        same.hardlink_to(table)
    else:
        same = table if kind == "path" else tmp_path / ".." / tmp_path.name / "in.tsv"
    run = call("predict", speller, "--file", table, "--to", same)
    assert (run.code, run.out) == (2, "")
    assert f"--to {same} " in run.err
    assert table.read_text() == "word\nabcd\n"


def test_the_table_that_is_read_can_be_replaced(call: Call, speller: Path, tmp_path: Path) -> None:
    table = tmp_path / "in.tsv"
    table.write_text("word\nabcd\nfeed\n")
    assert call("predict", speller, "--file", table, "--to", table, "--overwrite").code == 0
    head, *rows = (line.split("\t") for line in table.read_text().splitlines())
    assert head == ["word", "prediction", "score"]
    assert [row[1] for row in rows] == [one.text for one in seq2see.load(speller).predict(["abcd", "feed"])]


def test_json_comes_beside_the_table(call: Call, speller: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("word\nabcd\nfeed\n")
    arguments = ["predict", speller, "--file", tmp_path / "in.tsv", "--to", tmp_path / "out.tsv"]
    assert call(*arguments).out == ""
    records = [json.loads(line) for line in call(*arguments, "--json").lines]
    written = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()[1:]]
    assert [[record["input"], record["text"]] for record in records] == [row[:2] for row in written]
    assert "looks" not in records[0]
    assert "looks" in json.loads(call(*arguments, "--looks", "-").lines[0])


def test_ranks_that_a_model_does_not_have_are_left_empty(call: Call, judge: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("first\tsecond\nab\tba\n")
    run = call("predict", judge, "--file", tmp_path / "in.tsv", "--to", tmp_path / "out.tsv", "--n-best", 3)
    assert run.code == 0
    head, row = ((line + "\n").split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines())
    assert len(head) == len(row) == 8
    assert {row[2], row[4]} == {"alike", "different"}
    assert row[6:] == ["", "\n"]
