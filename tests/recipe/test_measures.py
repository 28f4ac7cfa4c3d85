"""The metrics a recipe knows are those there are, taken of what they are for."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.evaluation import BASELINES, METRICS, default_baseline, default_metrics, lookup
from seq2see.pipeline.evaluator import metrics_of
from seq2see.recipe import load_recipe, shipped
from seq2see.recipe.schema import EvaluationSettings, allowed_baselines, allowed_metrics, measures_of


def test_every_metric_fits_some_recipe() -> None:
    source: dict[str, Any] = {"inputs": {"source": {}}}
    linked = {**source, "loss": {"alignment": {"column": "links"}}}
    raws: tuple[dict[str, Any], ...] = (
        linked,
        {**source, "output": {"kind": "label"}},
        {"inputs": {"x": {"kind": "vector"}}, "output": {"kind": "vector"}},
    )
    assert {name for raw in raws for name in allowed_metrics(load_recipe(raw))} == set(METRICS)
    assert allowed_metrics(load_recipe({})) == ["perplexity"]
    assert "aer" not in allowed_metrics(load_recipe(source))


@pytest.mark.parametrize("tokens", ["word", "character", "symbol", "bpe"])
def test_what_fits_an_output_is_what_evaluation_takes(tokens: Any) -> None:
    source: dict[str, Any] = {"inputs": {"source": {}}}
    for raw, inputs in ((source, True), ({}, False)):
        recipe = load_recipe({**raw, "output": {"tokens": tokens}})
        assert measures_of(recipe) == default_metrics("text", tokens, inputs=inputs) == metrics_of(recipe)
    label = load_recipe({**source, "output": {"kind": "label"}})
    assert measures_of(label) == default_metrics("label") == metrics_of(label)


@pytest.mark.parametrize("name", [*BASELINES, "none"])
def test_recipes_know_the_trivial_models_that_are_there(name: str) -> None:
    assert EvaluationSettings(baseline=name).baseline == name


def test_the_trivial_model_of_a_task_is_one_it_may_name() -> None:
    source: dict[str, Any] = {"inputs": {"source": {}}}
    for raw in ({}, source, {**source, "output": {"kind": "label"}}):
        recipe = load_recipe(raw)
        assert default_baseline(recipe.output.measured_as, inputs=bool(recipe.inputs)) in allowed_baselines(recipe)


@pytest.mark.parametrize("name", shipped())
def test_shipped_recipes_name_what_there_is(name: str) -> None:
    assert [lookup(metric).name for metric in measures_of(load_recipe(name))]
