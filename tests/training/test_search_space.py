"""Search spaces: every problem with its path, what no trial could have is refused, defaults fit every recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.recipe.messages import RecipeError
from seq2see.recipe.schema import flatten
from seq2see.training.search_space import Choices, Range, check_space, default_space, override, parse_space, read_space
from tests.training import tiny

RATE = "training.learning_rate"


def paths(error: pytest.ExceptionInfo[RecipeError]) -> set[str]:
    return {problem.path for problem in error.value.problems}


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(
        f"{RATE}: {{low: 0.001, high: 0.1, log: true}}\nencoder.size: {{choices: [4, 8]}}\n"
        "training.batch_tokens: {low: 20, high: 40}\n",
        "utf-8",
    )
    space, origin = read_space(path)
    assert origin == str(path)
    assert space == {
        RATE: Range(0.001, 0.1, log=True),
        "encoder.size": Choices((4, 8)),
        "training.batch_tokens": Range(20, 40),
    }
    check_space(tiny.ROWS, space, [], origin=origin)
    rate, batch = space[RATE], space["training.batch_tokens"]
    assert isinstance(batch, Range)
    assert batch.whole
    assert 0.01 in rate
    assert 0.2 not in rate
    assert 30.5 not in batch
    assert rate.rounded(0.0123456) == 0.0123
    assert rate.rounded(0.00100001) == 0.001


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        ({RATE: 0.1}, {RATE}),
        ({RATE: {"low": 1}}, {f"{RATE}.high"}),
        ({RATE: {"low": 0.0, "high": 1.0, "log": True}}, {f"{RATE}.low"}),
        ({RATE: {"low": 2, "high": 1}}, {f"{RATE}.high"}),
        ({RATE: {"low": 1, "high": 2, "log": "yes"}}, {f"{RATE}.log"}),
        ({RATE: {"low": 1, "heigh": 2}}, {f"{RATE}.heigh"}),
        ({RATE: {"low": float("nan"), "high": 2}}, {f"{RATE}.low"}),
        ({RATE: {"choices": [1]}}, {f"{RATE}.choices"}),
        ({RATE: {"choices": [1, 1]}}, {f"{RATE}.choices"}),
        ({RATE: {"choices": [1, None]}}, {f"{RATE}.choices"}),
        ({RATE: {"choices": [1, 2], "log": True}}, {f"{RATE}.log"}),
        ({"encoder": {"choices": ["a", "b"]}, "encoder.size": {"choices": [1, 2]}}, {"encoder.size"}),
        ({RATE: 1, "decoder.size": {"low": 3}}, {RATE, "decoder.size.high"}),
    ],
)
def test_mistakes_are_named_by_their_paths(raw: dict[str, Any], wrong: set[str]) -> None:
    with pytest.raises(RecipeError) as refused:
        parse_space(raw, origin="space.yaml")
    assert paths(refused) == wrong
    assert str(refused.value).startswith("space.yaml: ")


@pytest.mark.parametrize("raw", [None, [], {}, "x"])
def test_what_is_no_mapping_is_refused(raw: Any) -> None:
    with pytest.raises(UserError, match=r"space\.yaml: a mapping"):
        parse_space(raw, origin="space.yaml")


def test_what_no_trial_could_have_is_refused() -> None:
    raw = {
        "encoder.sise": {"choices": [4, 8]},
        "attention.score": {"choices": ["dot", "nod"]},
        "encoder.size": {"low": -4, "high": 8},
        "training.minutes": {"low": 1, "high": 2},
        "training.seed": {"low": 1, "high": 2},
        "data.dev_share": {"low": 0.1, "high": 0.2},
        "training.samples": {"low": 1, "high": 2},
        "decoder.size": {"choices": [6, 8]},
        "loss.label_smoothing": {"low": 0.0, "high": 0.3},
    }
    with pytest.raises(RecipeError) as refused:
        check_space(tiny.ROWS, parse_space(raw, origin="s"), ["decoder.size=6"], origin="s")
    assert paths(refused) == raw.keys() - {"loss.label_smoothing"}


@pytest.mark.parametrize("recipe", ["transliteration", "autoencoder", "visual-question-answering", "language-model"])
def test_the_default_space_lies_around_the_recipe(recipe: str) -> None:
    space = default_space(recipe, ["loss.label_smoothing=0.05"] if recipe == "transliteration" else [])
    settings = dict(flatten(load_recipe(recipe).to_dict()))
    assert RATE in space
    assert "loss.label_smoothing" not in space or recipe != "transliteration"
    for key, dimension in space.items():
        assert settings[key] in dimension
        for value in dimension.probes:
            changed = dict(flatten(load_recipe(recipe, overrides=[override(key, value)]).to_dict()))
            assert changed[key] == value
