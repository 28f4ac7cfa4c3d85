"""A model knows the columns it was trained with; names on the command line may hold commas."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see import api
from seq2see.recipe import load_recipe
from tests.commands import Run

Call = Callable[..., Run]
WORDS = [a + b + c for a in "abcd" for b in "ab" for c in "abcd"]


def csv(path: Path, header: str, *, between: str = ",", beside: str = "") -> Path:
    rows = [between.join([word, word.upper(), *([beside] if beside else [])]) for word in WORDS]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def named(spelling: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(model, table) of a training that was told its columns."""
    folder = tmp_path_factory.mktemp("named")
    table = csv(folder / "table.csv", "Heard,Spelt,note", beside="x")
    api.train(spelling, table, columns=["Heard", "Spelt"], out=folder / "model", updates=2, listeners=[])
    return folder / "model", table


def test_the_recipe_of_a_model_has_the_columns_it_was_trained_with(named: tuple[Path, Path]) -> None:
    recipe = load_recipe(named[0] / "recipe.yaml", complete=True)
    assert (recipe.inputs["source"].column, recipe.output.column) == ("Heard", "Spelt")


def test_commands_find_these_columns_by_themselves(named: tuple[Path, Path], call: Call) -> None:
    model, table = named
    assert len(call("predict", model, "--file", table).lines) == len(WORDS)
    assert json.loads(call("evaluate", model, "--data", table, "--json").out)["rows"] == len(WORDS)
    assert json.loads(call("score", model, "--data", table, "--json").out)["rows"] == len(WORDS)
    assert len(call("encode", model, "--file", table, "--json").lines) == len(WORDS)
    shown = call("show", model).out
    assert "'Heard'" in shown
    assert "'word'" not in shown


def test_prediction_needs_the_columns_of_the_inputs_alone(named: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,Heard,more\n1,ab,x\n2,ba,y\n", encoding="utf-8")
    assert len(call("predict", named[0], "--file", tmp_path / "new.csv").lines) == 2


def test_columns_that_were_found_by_their_place_are_known_too(spelling: Path, call: Call, tmp_path: Path) -> None:
    table = csv(tmp_path / "two.csv", "english,hindi")
    api.train(spelling, table, out=tmp_path / "model", updates=1, listeners=[])
    wider = csv(tmp_path / "wider.csv", "english,hindi,count", beside="3")
    assert call("predict", tmp_path / "model", "--file", wider).code == 0
    assert "'hindi'" in call("show", tmp_path / "model").out


def test_the_only_columns_of_another_table_are_still_taken_and_said(
    named: tuple[Path, Path], call: Call, tmp_path: Path
) -> None:
    done = call("evaluate", named[0], "--data", csv(tmp_path / "other.csv", "english,hindi"))
    assert done.code == 0
    assert "'english' -> 'hindi'" in done.err


def test_a_run_goes_on_and_is_gone_on_from_with_the_columns_it_has(
    named: tuple[Path, Path], spelling: Path, tmp_path: Path
) -> None:
    model = named[0]
    api.train(None, out=model, resume=True, updates=3, listeners=[])
    api.train(None, csv(tmp_path / "more.csv", "x,y"), start=model, out=tmp_path / "tuned", updates=1, listeners=[])
    assert load_recipe(tmp_path / "tuned" / "recipe.yaml").output.column == "y"
    api.train(spelling, csv(tmp_path / "own.csv", "word,spelled"), start=model, out=tmp_path / "own", listeners=[])
    assert load_recipe(tmp_path / "own" / "recipe.yaml").output.column == "spelled"


def test_lines_of_text_give_their_column_no_name(tmp_path: Path) -> None:
    recipe = {"output": {"tokens": "character", "column": "sentence"}, "decoder": {"size": 8, "embedding": {"size": 4}}}
    (tmp_path / "lines.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    api.train(recipe, tmp_path / "lines.txt", out=tmp_path / "model", updates=1, listeners=[])
    assert load_recipe(tmp_path / "model" / "recipe.yaml").output.column == "sentence"


def test_a_dev_table_may_have_the_names_of_the_recipe_or_of_the_training_table(spelling: Path, tmp_path: Path) -> None:
    table = csv(tmp_path / "train.csv", "english,hindi")
    for number, header in enumerate(("english,hindi,note", "word,spelled,note")):
        dev = csv(tmp_path / "dev.csv", header, beside="x")
        api.train(spelling, table, dev=dev, out=tmp_path / f"run{number}", updates=1, listeners=[])


def test_an_input_in_python_may_go_by_its_column(named: tuple[Path, Path]) -> None:
    model = api.load(named[0])
    expected = model.predict("abc").text
    assert model.predict({"Heard": "abc"}).text == expected
    assert model.predict({"source": "abc"}).text == expected


# ---------------------------------------------------------------- names with commas


def test_a_semicolon_table_whose_header_holds_a_comma(spelling: Path, call: Call, tmp_path: Path) -> None:
    table = csv(tmp_path / "heard.csv", "Heard (age, village);Spelt", between=";")
    done = call("train", spelling, "--data", table, "--out", tmp_path / "model", "--updates", 1)
    assert done.code == 0
    assert "semicolon" in done.err
    assert "data.delimiter" in done.err
    recipe = load_recipe(tmp_path / "model" / "recipe.yaml")
    assert recipe.inputs["source"].column == "Heard (age, village)"


def test_a_column_with_a_comma_is_named_in_quotes(spelling: Path, call: Call, tmp_path: Path) -> None:
    table = csv(tmp_path / "heard.csv", "Heard (age, village);Spelt;note", between=";", beside="x")
    columns = '"Heard (age, village)",Spelt'
    train = ("train", spelling, "--data", table, "--out", tmp_path / "model", "--updates", 1)
    assert call(*train, "--columns", columns).code == 0
    assert load_recipe(tmp_path / "model" / "recipe.yaml").output.column == "Spelt"


def test_a_column_with_a_comma_is_found_without_quotes_too(spelling: Path, call: Call, tmp_path: Path) -> None:
    table = csv(tmp_path / "heard.csv", "Heard (age, village);Spelt;note", between=";", beside="x")
    train = ("train", spelling, "--data", table, "--out", tmp_path / "model", "--updates", 1)
    assert call(*train, "--columns", "Heard (age, village),Spelt").code == 0
    recipe = load_recipe(tmp_path / "model" / "recipe.yaml")
    assert (recipe.inputs["source"].column, recipe.output.column) == ("Heard (age, village)", "Spelt")


def test_messages_give_names_that_can_be_pasted(spelling: Path, call: Call, tmp_path: Path) -> None:
    table = csv(tmp_path / "heard.csv", "Heard (age, village);Spelt;note", between=";", beside="x")
    train = ("train", spelling, "--data", table, "--out", tmp_path / "model", "--updates", 1)
    assert 'the table has: "Heard (age, village)", Spelt, note' in call(*train).err
    done = call(*train, "--columns", "Heard,Spelt")
    assert done.code == 2
    words = shlex.split(done.err[done.err.rindex("--columns ") :])
    assert call(*train, "--columns", words[1]).code == 0


def test_quotes_that_are_never_closed_are_refused(spelling: Path, call: Call, pairs: Path) -> None:
    done = call("train", spelling, "--data", pairs, "--columns", '"word,spelled')
    assert (done.code, "--columns" in done.err) == (2, True)
