"""The recipe in a model's folder is trusted where it is as it was saved: rules are not checked again."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2see.pipeline.bundle import RECIPE, saved_recipe
from seq2see.pipeline.weights import write_checksums
from seq2see.recipe import load_recipe, rules, shipped, to_yaml
from seq2see.recipe.messages import RecipeError


def saved(folder: Path, text: str) -> Path:
    (folder / RECIPE).write_text(text, encoding="utf-8")
    write_checksums(folder, [folder / RECIPE])
    return folder


@pytest.mark.parametrize("name", shipped())
def test_a_trusted_recipe_is_the_one_that_was_saved(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe(name)
    folder = saved(tmp_path, to_yaml(recipe))
    monkeypatch.setattr(rules, "RULES", {"none": None})  # any use of it would fail
    assert saved_recipe(folder) == recipe


def test_an_edited_recipe_is_checked(tmp_path: Path) -> None:
    folder = saved(tmp_path, to_yaml(load_recipe("translation")))
    text = (folder / RECIPE).read_text("utf-8")
    (folder / RECIPE).write_text(text.replace("min_length: 0", "min_length: 9999"), encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        saved_recipe(folder)
    assert [(problem.path, problem.rule) for problem in caught.value.problems] == [
        ("search.min_length", "search-lengths")
    ]


def test_wrong_types_are_refused_even_where_the_checksum_fits(tmp_path: Path) -> None:
    text = to_yaml(load_recipe("translation")).replace("min_length: 0", "min_length: few")
    with pytest.raises(RecipeError) as caught:
        saved_recipe(saved(tmp_path, text))
    assert [problem.path for problem in caught.value.problems] == ["search.min_length"]
