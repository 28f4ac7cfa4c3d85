"""Measures on tables: references of equal inputs, baselines beside, the probability of given outputs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import seq2see
from seq2see.api import Model
from seq2see.data.columns import Question
from seq2see.errors import UserError
from seq2see.evaluation import evaluate
from seq2see.pipeline.evaluator import metric_rows


def test_rows_with_equal_inputs_are_references_of_each_other(model: Model) -> None:
    rows = [{"source": "aex", "output": "NO"}, {"source": "aex", "output": "AEX"}, {"source": "box", "output": "NO"}]
    report = model.evaluate(rows)
    assert report.metrics["exact"] == 0.5  # of two distinct inputs
    assert (report.rows, report.inputs) == (3, 2)
    assert list(report.to_dict())[:2] == ["rows", "inputs"]
    assert "3 rows, 2 distinct inputs" in report.text()
    assert model.evaluate(rows[2:]).text().splitlines()[0].strip() == "1 row"


def test_references_are_compared_in_the_unicode_form_of_outputs(model: Model) -> None:
    questions = [Question({"source": "aax"}, ["E\u0301le\u0300ve"], [0])]
    prediction = replace(model.predict("aax"), text="\u00c9l\u00e8ve")
    rows = metric_rows(model.bundles[0], questions, [prediction])
    assert evaluate(["exact", "cer"], rows).metrics == {"exact": 1.0, "cer": 0.0}


def test_who_waits_is_told_how_far_it_is(model: Model, table: Path) -> None:
    told: list[tuple[str, int, int]] = []
    model.evaluate(table, progress=lambda *how_far: told.append(how_far))
    assert [one for one in told if one[1] == one[2]] == [("inputs answered", 64, 64), ("outputs scored", 64, 64)]
    told.clear()
    model.score(table, progress=lambda *how_far: told.append(how_far))
    assert told[-1] == ("outputs scored", 64, 64)


def test_the_trivial_model_stands_beside(model: Model, table: Path) -> None:
    report = model.evaluate(table)
    assert report.baseline["exact"] == 0.0
    assert report.metrics["exact"] > 0.9
    assert report.baseline["perplexity"] > 2 * report.metrics["perplexity"]
    assert "copying the input" in report.baseline_says
    assert "unigram" in report.baseline_says
    assert set(report.to_dict()) >= {"rows", "metrics", "baseline"}


def test_n_best_accuracy_asks_for_enough_hypotheses(model: Model) -> None:
    rows = [{"source": "aex", "output": model.predict("aex", beam=3, n_best=3).alternatives[1].text}]
    assert model.evaluate(rows, metrics=["exact"]).metrics["exact"] == 0.0
    assert model.evaluate(rows, metrics=["exact@3"]).metrics["exact@3"] == 1.0


def test_the_score_of_an_output_is_what_the_search_reports_for_it(model: Model) -> None:
    made = model.predict("aex")
    scored = model.score([{"source": "aex", "output": made.text or ""}])
    assert scored.log_probability == pytest.approx(made.log_probability, abs=1e-5)
    assert scored.tokens == len(made.tokens)
    assert scored.perplexity == pytest.approx(math.exp(-made.log_probability / len(made.tokens)), rel=1e-5)


def test_the_probabilities_of_labels_sum_to_one(labels: Model) -> None:
    rows = [{"one": "a x", "two": "a y", "output": label} for label in ("same", "other")]
    total = sum(math.exp(labels.score([row]).log_probability) for row in rows)
    assert total == pytest.approx(1.0, abs=1e-6)


def test_labels_are_learned_and_measured(labels: Model) -> None:
    rows = [{"one": f"a {b}", "two": f"a {c}", "output": "same" if b == c else "other"} for b in "xyz" for c in "xyz"]
    report = labels.evaluate(rows)
    assert report.metrics["accuracy"] == 1.0
    assert report.baseline["accuracy"] == pytest.approx(6 / 9)


def test_a_metric_for_another_kind_of_output_is_refused(model: Model, table: Path) -> None:
    with pytest.raises(UserError, match="accuracy"):
        model.evaluate(table, metrics=["accuracy"])


def test_a_table_without_the_columns_is_refused_by_name(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("a\tb\tc\n1\t2\t3\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.tsv.*source.*a, b, c"):
        model.evaluate(path)


def test_a_language_model_has_perplexity_and_speaks_by_chance(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("abcabcabc\n" * 60, encoding="utf-8")
    recipe = {"output": {"tokens": "character", "column": "text"}, "data": {"stream": True}}
    small = [
        "decoder={size: 16, embedding: {size: 8}}",
        "training={bptt: 20, lanes: 4, learning_rate: 0.02, report_every: 100}",
    ]
    model = seq2see.train(recipe, text, out=tmp_path / "lm", overrides=small, updates=200, listeners=[])
    report = model.evaluate(text)
    assert report.metrics["perplexity"] < 1.3 < 3.0 < report.baseline["perplexity"]
    said = [one.text or "" for one in [model.predict(max_length=30, seed=seed) for seed in (1, 2)]]
    assert all(set(text) <= set("abc\n") for text in said)
    assert not model.predict().looks.maps
    assert "no input" in (model.predict().looks.reason or "")
