"""A score of one's own brings options that recipes do not know: they are named, checked and handed on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seq2see.attention import Score, scores
from seq2see.errors import UserError
from seq2see.recipe import load_recipe

ONE = {"inputs": {"source": {}}}
SLOPED = {**ONE, "attention": {"score": "sloped", "size": 9, "options": {"slope": 0.5}}}

pytestmark = pytest.mark.usefixtures("_sloped")


class Sloped(Score):
    def __init__(self, query: int, key: int, size: int = 3, slope=None, curved=None): ...

    def energies(self, query, keys): ...


@pytest.fixture
def _sloped() -> Iterator[None]:
    scores.register("sloped")(Sloped)
    yield
    scores.remove("sloped")


def test_options_are_the_scores_own_where_no_key_stands_for_them() -> None:
    assert scores.settings["sloped"].known_keys() == ["size", "options"]
    assert "options" not in scores.settings["additive"].known_keys()


def test_own_options_stand_beside_the_known_ones() -> None:
    recipe = load_recipe(SLOPED)
    settings = recipe.attention.score_settings
    assert (settings["slope"], settings["size"]) == (0.5, 9)
    assert "options" not in settings
    assert load_recipe(recipe.to_dict()) == recipe


@pytest.mark.parametrize(("text", "value"), [("true", True), ("2", 2), ("0.5", 0.5), ("left", "left")])
def test_an_option_is_set_as_any_key_and_keeps_its_type(text: str, value: object) -> None:
    found = load_recipe(SLOPED, overrides=[f"attention.options.slope={text}"]).attention.options["slope"]
    assert (found, type(found)) == (value, type(value))


def test_an_option_the_score_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"options\.slop: .*\(did you mean 'slope'\?\); allowed: curved, slope"):
        load_recipe(SLOPED, overrides=["attention.options.slop=1"])


def test_another_score_leaves_the_options_behind() -> None:
    for score in ("additive", "none"):
        assert load_recipe(SLOPED, overrides=[f"attention.score={score}"]).attention.score == score
