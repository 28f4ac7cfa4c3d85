"""What a user gives and a model cannot read or write: said at once, by the name that the user knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see import api
from seq2see.errors import UserError
from tests.cli.conftest import SMALL, SPELLING, recipe
from tests.commands import Run

Call = Callable[..., Run]
NUMBERS = {
    "inputs": {"row": {"kind": "vector", "column": "numbers"}},
    "output": {"kind": "vector", "column": "numbers"},
}


@pytest.fixture(scope="session")
def short(home: Path, pairs: Path) -> Path:
    """A speller whose decoder has learned nine positions."""
    decoder = {"kind": "transformer", "size": 16, "heads": 2, "feedforward": 16, "positions": "learned", "longest": 9}
    output = {**SPELLING["output"], "max_length": 8}
    path = recipe(home, "short", **{**SPELLING, "output": output}, decoder=decoder, search={"max_length": 9})
    api.train(path, pairs, out=home / "short", updates=1, listeners=[])
    return home / "short"


def test_positions_end_before_anything_is_written(call: Call, short: Path) -> None:
    assert call("predict", short, "abcd", "--max-length", 9).code == 0
    run = call("predict", short, "abcd", "--max-length", 100)
    assert run.code == 2
    assert "--max-length 100: the model has learned 9 positions and none beyond; allowed: at most 9" in run.err
    with pytest.raises(UserError, match="max_length 10: the model has learned 9 positions"):
        api.load(short).predict("abcd", max_length=10)
    run = call("look", short, "abcd", "--target", "A B C D E F A B C D", "--out", short / "x.png")
    assert (run.code, "target: 11 tokens, <eos> counted: the model has learned 9" in run.err) == (2, True)


def test_a_language_model_has_no_looks_to_test(call: Call, babbler: Path, pairs: Path) -> None:
    run = call("faithful", babbler, "--data", pairs)
    assert run.code == 2
    assert "a language model reads no input" in run.err
    assert "attention.score" not in run.err


def test_numbers_are_counted_by_the_name_of_the_input(call: Call, home: Path) -> None:
    table = home / "numbers.tsv"
    table.write_text("numbers\n" + "".join(f"{n} {n + 1} {n + 2} 1\n" for n in range(20)), encoding="utf-8")
    kept = {"encoder": {"kind": "dense", "hidden": [4], "size": 2}, "decoder": {}, "attention": "none", "search": {}}
    training = {**SMALL["training"], "updates": 1}
    api.train(recipe(home, "numbers", **NUMBERS, **kept, training=training), table, out=home / "numbers", listeners=[])
    run = call("predict", home / "numbers", "1 2 3")
    assert run.code == 2
    assert "INPUT: input 'row': 3 numbers, and every row has 4" in run.err
    assert call("predict", home / "numbers", "1 2 3 4").code == 0


def test_a_list_of_texts_may_be_given_as_json(call: Call, home: Path, stdin: Callable[[str], None]) -> None:
    table = home / "said.jsonl"
    rows = [{"said": [f"a{n}", "b c", "d"], "answer": "yes" if n % 2 else "no"} for n in range(20)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    parts = {
        "inputs": {"said": {"kind": "texts"}},
        "output": {"kind": "label", "column": "answer"},
        "encoder": {"kind": "hierarchical", "size": 4, "embedding": {"size": 4}},
        "decoder": {"size": 8},
        "search": {},
    }
    api.train(recipe(home, "said", **parts), table, out=home / "said", updates=1, listeners=[])
    given = json.dumps(["b c", "d"])
    run = call("look", home / "said", given, "--out", home / "said.json")
    assert (run.code, json.loads((home / "said.json").read_text("utf-8"))["inputs"]) == (0, ["b c", "d"])
    stdin(given + "\n")
    assert json.loads(call("predict", home / "said", "--json").out)["input"] == call_input(call, home / "said", given)
    run = call("predict", home / "said", "[not json", "--json")
    assert (run.code, json.loads(run.out)["input"]) == (0, "[not json")
    run = call("predict", home / "said", '[["deep"]]')
    assert (run.code, "INPUT: input 'said':" in run.err) == (2, True)


def call_input(call: Call, model: Path, given: str) -> object:
    """The input as `predict` tells it of an argument."""
    return json.loads(call("predict", model, given, "--json").out)["input"]


def test_files_are_folders(call: Call, speller: Path) -> None:
    run = call("serve", speller, "--files", speller / "recipe.yaml")
    assert (run.code, f"recipe.yaml: a file; allowed: a folder ({speller})" in run.err) == (2, True)
    assert "no such folder" in call("serve", speller, "--files", speller / "gone").err


def test_gradients_are_of_a_recipe(call: Call, speller: Path, pairs: Path, tmp_path: Path) -> None:
    run = call("figure", "gradients", speller, "--data", pairs, "--out", tmp_path / "x.png")
    assert run.code == 2
    assert f"a recipe is expected here; {speller / 'recipe.yaml'} is one" in run.err
