"""Settings that are `auto` fit the table: where they may be, what they become, and that a model keeps it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

import seq2see
from seq2see.pipeline.five_answers import answers_of
from seq2see.recipe import fit_recipe, load_recipe
from seq2see.recipe.fitting import REFERENCE, RULES, TableFacts
from seq2see.recipe.messages import RecipeError
from tests.training.tiny import ROWS, run, words

SIZES = ["encoder.size", "decoder.size", "encoder.embedding.size", "decoder.embedding.size"]
SHARES = ["encoder.dropout", "decoder.dropout", "encoder.embedding.dropout", "decoder.embedding.dropout"]
OTHERS = ["training.batch_tokens", "training.epochs", "training.learning_rate", "attention.size"]


def at(recipe: seq2see.Recipe, path: str) -> Any:
    value: Any = recipe.to_dict()
    for key in path.split("."):
        value = value[key]
    return value


def table(rows: int) -> TableFacts:
    return TableFacts(rows=rows, symbols=7 * rows, tokens=15 * rows)


@pytest.mark.parametrize("path", [*SIZES, *SHARES, *OTHERS])
def test_a_setting_may_be_auto_and_follows_the_table(path: str) -> None:
    recipe = load_recipe("transliteration", overrides=[f"{path}=auto"])
    assert recipe.fitted == {path: str(at(recipe, path))}
    small, large = (fit_recipe(recipe, table(rows)) for rows in (400, 400_000))
    assert at(small, path) != at(large, path)
    assert (at(small, path) > at(large, path)) == (path in [*SHARES, "training.epochs", "training.learning_rate"])
    assert small.fitted[path].startswith(f"{at(small, path)}: 400 rows")
    others = {key: value for key, value in small.to_dict().items() if key not in (path.split(".")[0], "fitted")}
    assert others.items() <= recipe.to_dict().items()
    assert fit_recipe(small, table(9)) == small, "what is fitted stays"


@pytest.mark.parametrize("path", ["decoder.layers", "training.clip", "inputs.source.max_length"])
def test_other_settings_are_not_fitted(path: str) -> None:
    with pytest.raises(RecipeError) as refused:
        load_recipe("transliteration", overrides=[f"{path}=auto"])
    assert [problem.path for problem in refused.value.problems] == [path]


@pytest.mark.parametrize("rule", ["size", "dropout", "batch", "rate", "epochs"])
def test_rules_never_jump(rule: str) -> None:
    """A row more or less changes little: twice the rows never change a value by more than a half or so."""
    for path in ("encoder.size", "decoder.size", "encoder.embedding.size"):
        values = [float(RULES[rule](table(int(50 * 1.5**power)), path, {})) for power in range(22)]
        assert all(min(pair) > 0.55 * max(pair) for pair in pairwise(values))
        assert values in (sorted(values), sorted(values, reverse=True))


def test_what_is_switched_off_is_not_fitted() -> None:
    recipe = load_recipe("transliteration", overrides=["attention.size=auto"])
    raw = {**recipe.to_dict(), "attention": "none"}
    assert fit_recipe(load_recipe(raw), table(400)).fitted == {}


def test_an_input_with_an_encoder_of_its_own_is_fitted_too() -> None:
    recipe = load_recipe({"inputs": {"a": {"encoder": {"layers": 2}}, "b": {}}, "encoder": {"size": "auto"}})
    assert set(recipe.fitted) == {"encoder.size", "inputs.a.encoder.size"}
    fitted = fit_recipe(recipe, table(400))
    own = fitted.inputs["a"].encoder
    assert own is not None
    assert own.summary_size == fitted.encoder_of("b").summary_size != recipe.encoder_of("b").summary_size


def test_a_model_keeps_what_its_table_made_of_auto(tmp_path: Path) -> None:
    recipe = {**ROWS, "encoder": {**ROWS["encoder"], "size": "auto"}, "decoder": {**ROWS["decoder"], "dropout": "auto"}}
    data = words(tmp_path / "words.tsv")
    model = run({**recipe, "attention": {"score": "additive"}}, data, tmp_path / "run", updates=2)
    saved = yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text("utf-8"))
    assert saved["encoder"]["size"] == model.recipe.encoder.summary_size != REFERENCE.rows
    assert set(saved["fitted"]) == {"encoder.size", "decoder.dropout"}
    assert all(reason.split(": ")[1].endswith("output symbols") for reason in saved["fitted"].values())
    again = seq2see.load(tmp_path / "run")
    assert again.recipe == model.recipe
    assert any("encoder.size" in note for note in answers_of(again.recipe).notes)
    resumed = run(None, None, tmp_path / "run", ["training.updates=4"], resume=True)
    assert resumed.recipe.fitted == model.recipe.fitted


def test_fine_tuning_keeps_the_sizes_of_the_model(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    rows = {**ROWS, "attention": {"score": "additive"}}
    run(rows, data, tmp_path / "first", updates=2)
    recipe = {**rows, "encoder": {**ROWS["encoder"], "size": "auto", "dropout": "auto"}}
    model = run(recipe, data, tmp_path / "second", start=tmp_path / "first", updates=2)
    assert model.recipe.encoder.summary_size == ROWS["encoder"]["size"]
    assert set(model.recipe.fitted) == {"encoder.dropout"}


@pytest.mark.parametrize("value", ["64", "176"])  # 176: what `show` assumes
def test_what_is_set_by_hand_is_not_fitted(value: str) -> None:
    recipe = load_recipe("grapheme-to-phoneme")
    changed = load_recipe(recipe, overrides=[f"encoder.size={value}", "training.epochs=5"])
    fitted = fit_recipe(changed, table(400))
    assert (at(fitted, "encoder.size"), fitted.training.epochs) == (int(value), 5)
    assert {"encoder.size", "training.epochs"}.isdisjoint(fitted.fitted)
    assert "decoder.size" in fitted.fitted
    by_hand = recipe.to_dict()
    by_hand["training"]["epochs"] = 3
    assert fit_recipe(load_recipe(by_hand), table(400)).training.epochs == 3
    later = load_recipe(fitted, overrides=["decoder.size=512"])
    assert "decoder.size" not in later.fitted
    assert later.fitted["decoder.dropout"] == fitted.fitted["decoder.dropout"]


def test_the_average_follows_the_length_of_the_run() -> None:
    recipe = load_recipe("grapheme-to-phoneme")
    short = load_recipe(recipe, overrides=["training.epochs=2"])
    assert fit_recipe(short, table(3_600)).training.ema < fit_recipe(recipe, table(3_600)).training.ema
