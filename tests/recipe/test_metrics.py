"""Metrics and baselines that a recipe may name are those of the package, each for its outputs."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.evaluation import BASELINES, METRICS, default_baseline, default_metrics, lookup
from seq2see.pipeline.evaluator import metrics_of
from seq2see.recipe import load_recipe, shipped
from seq2see.recipe.schema import EvaluationSettings, allowed_baselines, allowed_metrics, measures_of
from tests.recipe.refusing import ONE


def test_every_metric_fits_some_recipe() -> None:
    linked = {**ONE, "loss": {"alignment": {"column": "links"}}}
    raws: tuple[dict[str, Any], ...] = (
        linked,
        {**ONE, "output": {"kind": "label"}},
        {"inputs": {"x": {"kind": "vector"}}, "output": {"kind": "vector"}},
    )
    assert {name for raw in raws for name in allowed_metrics(load_recipe(raw))} == set(METRICS)
    assert allowed_metrics(load_recipe({})) == ["perplexity"]
    assert "aer" not in allowed_metrics(load_recipe(ONE))


@pytest.mark.parametrize("tokens", ["word", "character", "symbol", "bpe"])
def test_the_default_metrics_of_an_output(tokens: Any) -> None:
    for raw, inputs in ((ONE, True), ({}, False)):
        recipe = load_recipe({**raw, "output": {"tokens": tokens}})
        assert measures_of(recipe) == default_metrics("text", tokens, inputs=inputs) == metrics_of(recipe)
    label = load_recipe({**ONE, "output": {"kind": "label"}})
    assert measures_of(label) == default_metrics("label") == metrics_of(label)


@pytest.mark.parametrize("name", [*BASELINES, "none"])
def test_recipes_know_every_baseline(name: str) -> None:
    assert EvaluationSettings(baseline=name).baseline == name


def test_the_default_baseline_of_a_task_is_allowed() -> None:
    for raw in ({}, ONE, {**ONE, "output": {"kind": "label"}}):
        recipe = load_recipe(raw)
        assert default_baseline(recipe.output.measured_as, inputs=bool(recipe.inputs)) in allowed_baselines(recipe)


@pytest.mark.parametrize("name", shipped())
def test_shipped_recipes_name_known_metrics(name: str) -> None:
    assert [lookup(metric).name for metric in measures_of(load_recipe(name))]
