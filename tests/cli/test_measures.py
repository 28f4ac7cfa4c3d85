"""evaluate and score: the same numbers as in Python, as tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import seq2see
from seq2see.cli.parser import print_json
from tests.commands import Run

Call = Callable[..., Run]


def test_evaluate_json_is_the_contract(call: Call, speller: Path, pairs: Path) -> None:
    record = json.loads(call("evaluate", speller, "--data", pairs, "--json").out)
    assert (record["rows"], record["inputs"]) == (200, 200)
    assert list(record["metrics"]) == ["exact", "cer", "perplexity"]
    assert set(record["baseline"]) == {"exact", "cer", "perplexity"}
    assert record["metrics"] == pytest.approx(seq2see.load(speller).evaluate(pairs).metrics)


def test_rows_and_distinct_inputs_are_told_apart(call: Call, speller: Path, babbler: Path, tmp_path: Path) -> None:
    table = tmp_path / "twice.tsv"
    table.write_text("word\tspelled\nabcd\tA B C D\nabcd\tA B\nfeed\tF E E D\n", encoding="utf-8")
    record = json.loads(call("evaluate", speller, "--data", table, "--json").out)
    assert (record["rows"], record["inputs"]) == (3, 2)
    assert "3 rows, 2 distinct inputs" in call("evaluate", speller, "--data", table).out
    assert "inputs" not in json.loads(call("evaluate", babbler, "--data", table, "--columns", "word", "--json").out)


def test_evaluate_as_a_table_with_its_parts(call: Call, speller: Path, pairs: Path) -> None:
    run = call("evaluate", speller, "--data", pairs, "--by-length", "--positions", "--metrics", "exact")
    assert run.code == 0
    for title in ("200 rows", "by input length", "part of the input", "exact"):
        assert title in run.out
    assert "cer" not in run.out


def test_n_best_serves_metrics_of_several_outputs(call: Call, speller: Path, pairs: Path) -> None:
    arguments = ["evaluate", speller, "--data", pairs, "--json", "--metrics", "exact,exact@3", "--n-best", 3]
    metrics = json.loads(call(*arguments).out)["metrics"]
    assert metrics["exact@3"] >= metrics["exact"]


def test_evaluate_labels(call: Call, judge: Path, verdicts: Path) -> None:
    record = json.loads(call("evaluate", judge, "--data", verdicts, "--json").out)
    assert 0 <= record["metrics"]["accuracy"] <= 1


@pytest.mark.parametrize("command", ["evaluate", "score"])
def test_rows_that_were_trained_on_are_told_of(
    command: str, call: Call, speller: Path, pairs: Path, tmp_path: Path
) -> None:
    done = call(command, speller, "--data", pairs, "--json")
    seen = json.loads(done.out)["seen"]
    assert 180 <= seen["trained_on"] < seen["checked"] == 200
    assert f"{seen['trained_on']} of 200 rows were trained on" in done.err
    (tmp_path / "new.tsv").write_text("word\tspelled\nfacade\tF A C A D E\n", encoding="utf-8")
    other = call(command, speller, "--data", tmp_path / "new.tsv", "--json")
    assert json.loads(other.out)["seen"] == {"trained_on": 0, "other_output": 0, "checked": 1}
    assert "trained on" not in other.err


def test_score_adds_up(call: Call, speller: Path, pairs: Path) -> None:
    whole = json.loads(call("score", speller, "--data", pairs, "--json").out)
    each = [json.loads(line) for line in call("score", speller, "--data", pairs, "--each", "--json").lines]
    assert len(each) == whole["rows"] == 200
    assert sum(len(row["tokens"]) for row in each) == whole["tokens"]
    assert sum(row["log_probability"] for row in each) == pytest.approx(whole["log_probability"])
    assert each[0]["tokens"][-1]["text"] == "<eos>"
    given = [line.split("\t") for line in pairs.read_text("utf-8").splitlines()[1:]]
    assert [[row["input"], row["output"]] for row in each] == given
    assert f"perplexity {whole['perplexity']:.4f}" in call("score", speller, "--data", pairs).out
    assert len(call("score", speller, "--data", pairs, "--each").lines) == 200


def test_an_ensemble_is_scored_and_measured_like_a_model(call: Call, speller: Path, pairs: Path) -> None:
    twice = f"{speller}+{speller}"
    for command in ("score", "evaluate"):
        alone, both = (json.loads(call(command, which, "--data", pairs, "--json").out) for which in (speller, twice))
        assert alone.pop("seen") == both.pop("seen")
        measured = [one if command == "score" else one["metrics"] for one in (alone, both)]
        assert measured[1] == pytest.approx(measured[0], rel=1e-4)
    assert "perplexity" in both["metrics"]


def test_metrics_that_cannot_be_taken_are_refused(call: Call, babbler: Path, home: Path) -> None:
    run = call("evaluate", babbler, "--data", home / "words.tsv", "--metrics", "exact")
    assert run.code == 2
    assert "metric 'exact' cannot be taken of a language model" in run.err


def test_lines_of_a_score_name_their_inputs(call: Call, judge: Path, verdicts: Path, babbler: Path, home: Path) -> None:
    record = json.loads(call("score", judge, "--data", verdicts, "--each", "--json").lines[0])
    first, second, verdict = verdicts.read_text("utf-8").splitlines()[1].split("\t")
    assert (record["input"], record["output"]) == ({"first": first, "second": second}, verdict)
    record = json.loads(call("score", babbler, "--data", home / "words.tsv", "--each", "--json").lines[0])
    assert (record["input"], len(record["output"])) == (None, 4)


def test_one_is_not_several(call: Call, speller: Path, tmp_path: Path) -> None:
    table = tmp_path / "one.tsv"
    table.write_text("word\tspelled\nabcd\tA\n", encoding="utf-8")
    assert call("score", speller, "--data", table).out.startswith("1 row  2 tokens  ")
    assert call("evaluate", speller, "--data", table).lines[0].strip() == "1 row"


def test_score_of_a_language_model(call: Call, babbler: Path, home: Path) -> None:
    record = json.loads(call("score", babbler, "--data", home / "words.tsv", "--json").out)
    assert record["perplexity"] > 1


def test_json_knows_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"perplexity": float("inf"), "parts": [1.5, float("nan")]})
    assert json.loads(capsys.readouterr().out) == {"perplexity": None, "parts": [1.5, None]}
