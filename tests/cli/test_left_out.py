"""Settings of a recipe that one change makes meaningless are left out, and the user is told so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.errors import Notice
from seq2see.recipe import left_out, load_recipe, shipped
from seq2see.recipe.overrides import apply_overrides
from tests.cli.conftest import recipe
from tests.commands import Run

Call = Callable[..., Run]
POINTING: dict[str, Any] = {
    "inputs": {"source": {}},
    "decoder": {"copy_from": "source"},
    "loss": {"coverage": 0.1, "doubly_stochastic": 0.2, "alignment": {"column": "links", "weight": 0.3}},
    "search": {"replace_unknown": True},
    "evaluation": {"metrics": ["bleu", "aer"]},
}
GONE = [
    "decoder.copy_from",
    "loss.coverage",
    "loss.doubly_stochastic",
    "loss.alignment.column",
    "loss.alignment.weight",
    "search.replace_unknown",
    "evaluation.metrics",
]


@pytest.fixture(scope="module")
def copying(home: Path) -> Path:
    """A recipe whose model copies words of its input."""
    sides = {"inputs": {"source": {"column": "spelled", "tokens": "symbol"}}}
    output = {"column": "spelled", "tokens": "symbol"}
    return recipe(home, "copying", **sides, output=output, decoder={"size": 16, "copy_from": "source"})


@pytest.mark.parametrize("change", ["attention=none", "attention.score=none"])
def test_everything_that_goes_with_attention_is_named(change: str) -> None:
    lines = left_out(POINTING, [change])
    assert sorted(line.split()[0] for line in lines) == sorted(GONE)
    assert load_recipe(POINTING, overrides=[change]).copied_from is None


def test_what_is_left_out_of_a_shipped_recipe_is_named() -> None:
    """Whatever a change drops, but for the settings of what it replaces, is told."""
    for name in shipped():
        raw = load_recipe(name).to_dict()
        if not load_recipe(name).looked_at:
            continue
        after = apply_overrides(raw, [("attention", "none")])
        lost = [group for group in ("decoder", "loss", "search", "evaluation", "training") for key in raw[group]
                if key not in after[group]]  # fmt: skip
        assert len(left_out(raw, ["attention=none"])) >= len(lost), name


def test_settings_of_a_score_that_is_replaced_go_without_saying() -> None:
    assert left_out({"inputs": {"source": {}}, "attention": {"score": "deep", "layers": 3}}, ["attention=dot"]) == []


def test_nothing_is_left_out_where_nothing_is_changed() -> None:
    assert left_out(POINTING, []) == []
    assert left_out(POINTING, ["training.epochs=3"]) == []


def test_training_says_that_copying_is_left_out(copying: Path, pairs: Path, call: Call, tmp_path: Path) -> None:
    done = call("train", copying, "--data", pairs, "--out", tmp_path / "run", "--set", "attention=none", "--updates", 1)
    assert done.code == 0
    assert "decoder.copy_from source is left out" in done.err
    shown = call("show", tmp_path / "run").out
    assert [line for line in shown.splitlines() if line.split()[:2] == ["copying", "none:"]]


def test_showing_a_recipe_says_it_too(copying: Path, call: Call) -> None:
    assert "decoder.copy_from source is left out" in call("show", copying, "--set", "attention=none").out
    assert "left out" not in call("show", copying).out


def test_comparing_says_of_which_variant(copying: Path, pairs: Path, call: Call, tmp_path: Path) -> None:
    vary = ["--vary", "attention.score=additive,none", "--updates", 1]
    done = call("compare", copying, "--data", pairs, *vary, "--out", tmp_path / "compared")
    assert done.code == 0
    (line,) = [line for line in done.err.splitlines() if "decoder.copy_from" in line]
    assert "none" in line
    assert "additive" not in line


def test_unknown_words_cannot_be_replaced_without_attention(blind: Path) -> None:
    with pytest.warns(Notice, match="replace_unknown"):
        seq2see.load(blind).predict("ab", replace_unknown=True)
