from __future__ import annotations

import json
import math

from seq2see.evaluation import Report, Rows, Unigram, evaluate
from seq2see.evaluation.baselines import Copy

ROWS = Rows(
    ["a b", "x"],
    [["a b"], ["c d e f"]],
    inputs=["a b", "c d e g"],
    targets=[["a", "b", "<eos>"], ["c", "<eos>"]],
    log_probabilities=[-2.0, -3.0],
)


def test_report_as_the_contract_has_it() -> None:
    report = evaluate(["exact", "perplexity"], ROWS, baselines=[Copy(), Unigram({"a": 1})])
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert found["rows"] == 2
    assert found["metrics"] == {"exact": 0.5, "perplexity": math.exp(1)}
    assert found["baseline"]["exact"] == 0.5
    assert found["baseline"]["perplexity"] > 1
    assert found["baseline_says"] == "copying the input, the unigram model"
    assert set(found) == {"rows", "metrics", "baseline", "baseline_says"}


def test_report_with_everything() -> None:
    report = evaluate(["exact"], ROWS, bins=2, positions=True)
    found = report.to_dict()
    assert [part["metrics"]["exact"] for part in found["by_length"]] == [1.0, 0.0]
    assert sum(part["symbols"] for part in found["positions"]) == 6
    assert found["baseline"] == {}


def test_infinity_is_null_in_json() -> None:
    report = Report(rows=1, metrics={"perplexity": math.inf})
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["metrics"] == {"perplexity": None}


def test_text_is_a_table_with_the_baseline_measure_baselines() -> None:
    text = evaluate(["bleu", "perplexity"], ROWS, baselines=[Copy()], bins=2, positions=True).text()
    lines = [[cell.strip() for cell in line.strip("│┃ \n").replace("┃", "│").split("│")] for line in text.splitlines()]
    assert ["metric", "", "model", "copying the input"] in lines
    assert any(cells[:2] == ["perplexity", "lower is better"] and cells[2:] == ["2.72", "-"] for cells in lines)
    assert "2 rows" in text
    assert "by input length" in text
    assert "0% to 10%" not in text
    assert "10% to 20%" in text
