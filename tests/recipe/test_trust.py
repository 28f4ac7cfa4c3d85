"""What a forged model folder, a careless plug-in and threads cannot do to recipes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from seq2see.attention import Normaliser, normalisers
from seq2see.cells import GRU, cells
from seq2see.errors import UserError
from seq2see.pipeline.bundle import RECIPE, saved_recipe
from seq2see.pipeline.weights import write_checksums
from seq2see.recipe import load_recipe, to_yaml
from seq2see.recipe.messages import RecipeError
from seq2see.settings import base


def saved(folder: Path, text: str) -> Path:
    (folder / RECIPE).write_text(text, encoding="utf-8")
    write_checksums(folder, [folder / RECIPE])
    return folder


def test_limits_hold_where_the_checksum_fits(tmp_path: Path) -> None:
    text = to_yaml(load_recipe("translation")).replace("layers: 1", "layers: 1000")
    with pytest.raises(RecipeError) as caught:
        saved_recipe(saved(tmp_path, text))
    assert "layers" in {problem.rule for problem in caught.value.problems}


def test_a_recipe_of_an_earlier_format_is_checked_though_the_checksum_fits(tmp_path: Path) -> None:
    record = yaml.safe_load(to_yaml(load_recipe("translation")))
    del record["format"]
    record["search"]["min_length"] = 9999
    with pytest.raises(RecipeError) as caught:
        saved_recipe(saved(tmp_path, yaml.safe_dump(record, sort_keys=False)))
    assert {problem.rule for problem in caught.value.problems} == {"search-lengths"}


def test_a_plugin_cannot_take_the_key_of_another_setting() -> None:
    class Greedy(Normaliser):
        def __init__(self, heads: int = 4):
            super().__init__()

        def forward(self, energies):
            return energies

    class Wide(GRU):
        def __init__(self, inputs, size, *, layers: int = 4):
            super().__init__(inputs, size)

        def forward(self, projected, state, *, product):
            return super().forward(projected, state, product=product)

    normalisers.register("greedy")(Greedy)
    cells.register("wide")(Wide)
    try:
        with pytest.raises(UserError, match=r"normaliser 'greedy' \(Greedy\): .*heads"):
            load_recipe({"inputs": {"x": {}}, "attention": {"normaliser": "greedy"}})
        with pytest.raises(UserError, match=r"cell 'wide' \(Wide\): .*layers"):
            load_recipe({"inputs": {"x": {}}, "decoder": {"cell": "wide"}})
    finally:
        normalisers.remove("greedy")
        cells.remove("wide")


def test_threads_that_choose_the_same_settings_get_the_same_class(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"inputs": {"x": {}}, "attention": {"score": "deep", "scope": "local-predicted", "choice": "hard"}}
    for _ in range(5):
        monkeypatch.setattr(base, "_COMBINED", {})
        with ThreadPoolExecutor(4) as pool:
            recipes = list(pool.map(load_recipe, [raw] * 4))
        assert len({type(recipe.attention) for recipe in recipes}) == 1
        assert all(recipe == recipes[0] for recipe in recipes)


def test_a_check_that_calls_that_of_its_base_class_reports_once() -> None:
    from seq2see.modalities import inputs
    from seq2see.modalities.set import SetField, SetInput

    class BagInput(SetInput):
        kind: str = "bag"

        def check(self, recipe, path):
            yield from super().check(recipe, path)

    class BagField(SetField):
        Settings = BagInput

    inputs.register("bag")(BagField)
    try:
        with pytest.raises(RecipeError) as caught:
            load_recipe({"inputs": {"x": {"kind": "bag", "max_length": 5, "encoder": {"kind": "deep-sets"}}}})
        assert [problem.path for problem in caught.value.problems].count("inputs.x.max_length") <= 1
    finally:
        inputs.remove("bag")
