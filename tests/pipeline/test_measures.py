"""Metrics are given or refused, never dropped; what several models make of given outputs is what they would say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.api import Model
from seq2see.errors import Notice, UserError
from seq2see.pipeline.evaluator import report_metrics
from seq2see.recipe import Recipe, load_recipe
from tests.pipeline.conftest import PAIRS, SMALL

LABELLED = [{"one": "a x", "two": "a x", "output": "same"}, {"one": "b x", "two": "b y", "output": "other"}]
LABELS: dict[str, Any] = {"inputs": {"one": {}}, "output": {"kind": "label"}}


@pytest.fixture(scope="module")
def pair(model: Model, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Two models of one vocabulary that have learned differently."""
    out = tmp_path_factory.mktemp("second") / "run"
    other = seq2see.train(PAIRS, table, out=out, overrides=SMALL, updates=40, seed=5, listeners=[])
    return Model([model.bundle, other.bundle])


def changed(raw: dict[str, Any], *, metric: str | None = None, metrics: list[str] | None = None) -> Recipe:
    """A recipe with metrics put in behind the back of its own checks (names of a user's making pass them)."""
    recipe = load_recipe(raw)
    recipe.training.metric, recipe.evaluation.metrics = metric, metrics or []
    return recipe


def test_a_run_is_followed_by_the_metric_that_picks_its_model() -> None:
    assert report_metrics(changed(PAIRS)) == (["exact", "cer"], "exact")
    assert report_metrics(changed(PAIRS, metric="cer")) == (["exact", "cer"], "cer")
    assert report_metrics(changed(LABELS, metric="perplexity")) == (
        ["accuracy", "macro_f1", "perplexity"],
        "perplexity",
    )


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (changed({}, metrics=["exact"]), r"evaluation\.metrics: metric 'exact' cannot.*allowed: perplexity"),
        (changed({}, metric="bleu"), r"training\.metric: metric 'bleu' cannot.*allowed: perplexity"),
        (changed(LABELS, metrics=["bleu"]), r"evaluation\.metrics: metric 'bleu' is not for.*allowed: .*accuracy"),
        (changed(PAIRS, metric="bleu"), r"training\.metric: 'bleu' is not among evaluation\.metrics \(exact, cer\)"),
        (changed(PAIRS, metric="blue"), r"training\.metric: .*'blue'.*did you mean 'bleu'"),
    ],
)
def test_metrics_that_a_run_cannot_have_are_refused_before_it_begins(recipe: Recipe, message: str) -> None:
    with pytest.raises(UserError, match=message):
        report_metrics(recipe)


def test_the_perplexity_of_labels_is_measured_where_it_is_asked_for(labels: Model) -> None:
    assert "perplexity" not in labels.evaluate(LABELLED).metrics
    report = labels.evaluate(LABELLED, metrics=["perplexity", "accuracy"])
    assert list(report.metrics) == ["perplexity", "accuracy"]
    assert report.metrics["perplexity"] == pytest.approx(labels.score(LABELLED).perplexity)


def test_a_language_model_refuses_metrics_of_outputs(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("abc\nabd\nab\nb\n" * 9, encoding="utf-8")
    small = ["decoder={size: 8, embedding: {size: 4}}"]
    model = seq2see.train({"output": {"tokens": "character"}}, path, out=tmp_path / "lm", overrides=small, updates=1)
    with pytest.raises(UserError, match=r"metric 'exact' cannot be taken of a language model.*allowed: perplexity"):
        model.evaluate(path, metrics=["perplexity", "exact"])
    both = Model([model.bundle, model.bundle])
    assert both.evaluate(path).metrics == pytest.approx(model.evaluate(path).metrics)


def test_several_models_give_an_output_the_mean_of_their_probabilities(pair: Model) -> None:
    rows = [{"source": "aex", "output": "AEX"}, {"source": "diw", "output": "DI"}]
    alone = [Model(bundle).score(rows) for bundle in pair.bundles]
    together = pair.score(rows)
    for number, row in enumerate(together.each):
        for place, value in enumerate(row.log_probs):
            mean = sum(math.exp(one.each[number].log_probs[place]) for one in alone) / 2
            assert math.exp(value) == pytest.approx(mean, rel=1e-6)
    assert together.log_probability == pytest.approx(sum(row.log_probability for row in together.each))


def test_what_several_models_say_has_the_probability_they_report(pair: Model) -> None:
    said = pair.predict("aex", beam=2)
    scored = pair.score([{"source": "aex", "output": said.text or ""}])
    assert scored.log_probability == pytest.approx(said.log_probability, abs=1e-5)
    report = pair.evaluate([{"source": "aex", "output": said.text or ""}], metrics=["perplexity"])
    assert report.metrics == {"perplexity": pytest.approx(scored.perplexity)}


def test_several_models_read_a_text_together(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("abcab\n" * 40, encoding="utf-8")
    recipe = {"output": {"tokens": "character", "column": "text"}, "data": {"stream": True}}
    small = ["decoder={size: 8, embedding: {size: 4}}", "training={bptt: 10, lanes: 2, learning_rate: 0.02}"]
    one, other = (
        seq2see.train(recipe, path, out=tmp_path / str(seed), overrides=small, updates=20, seed=seed, listeners=[])
        for seed in (1, 2)
    )
    both = Model([one.bundle, other.bundle])
    twice = Model([one.bundle, one.bundle])
    assert twice.score(path).log_probability == pytest.approx(one.score(path).log_probability)
    # the mean of two probabilities is never below the geometric one
    assert both.score(path).log_probability > (one.score(path).log_probability + other.score(path).log_probability) / 2
    assert both.evaluate(path).metrics["perplexity"] == pytest.approx(both.score(path).perplexity)


@pytest.mark.parametrize("what", ["save", "encode", "explain", "describe"])
def test_what_several_models_cannot_do_as_one_is_refused(pair: Model, tmp_path: Path, what: str) -> None:
    calls = {
        "save": lambda: pair.save(tmp_path / "both"),
        "encode": lambda: pair.encode(["aex"]),
        "explain": lambda: pair.explain("aex"),
        "describe": pair.describe,
    }
    with pytest.raises(UserError, match=f"{what} takes one model, and this is an ensemble of 2"):
        calls[what]()


@pytest.mark.parametrize("label", ["smae", " "])
def test_a_label_without_a_probability_is_told_with_its_place(labels: Model, tmp_path: Path, label: str) -> None:
    rows = [LABELLED[0], {**LABELLED[1], "output": label}]
    path = tmp_path / "labels.csv"
    path.write_text("one,two,label\n" + "".join(",".join(row.values()) + "\n" for row in rows), encoding="utf-8")
    if label.strip():
        with pytest.raises(UserError, match=r"row 2: unknown label 'smae' .*'same'"):
            labels.score(rows)
        with pytest.raises(UserError, match=r"labels\.csv, line 3.*unknown label 'smae'"):
            labels.score(path)
    else:
        with pytest.warns(Notice, match="1 row with an empty 'output' left out, the first at row 2"):
            assert labels.score(rows).rows == 1
        with pytest.warns(Notice, match=r"labels\.csv: 1 row with an empty 'label' left out, the first at line 3"):
            assert labels.score(path).rows == labels.evaluate(path).rows == 1
