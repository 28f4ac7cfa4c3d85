"""What a model cannot read of its inputs is said: once for each matter, however many rows there are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.api import Model
from seq2see.errors import Notice, UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.inputs import Notices
from seq2see.recipe import load_recipe

SMALL = {"encoder": {"size": 4, "embedding": {"size": 4}}, "decoder": {"size": 4, "embedding": {"size": 4}}}


def reader(inputs: dict[str, Any], *rows: dict[str, str], output: dict[str, Any] | None = None) -> Model:
    """An untrained model that has seen these rows."""
    recipe = load_recipe({"inputs": inputs, "output": output or {"tokens": "symbol"}, **SMALL})
    return Model(Bundle.create(recipe, Fields.build(recipe, lambda: iter(rows))))


def said(model: Model, *rows: dict[str, str], outputs: bool = False) -> list[str]:
    notices = Notices(model.bundles, outputs=outputs)
    notices.read(rows)
    return notices.lines()


def letters(**settings: Any) -> Model:
    return reader({"word": {"tokens": "character", **settings}}, {"word": "abcd", "output": "A B"})


def test_symbols_never_seen_are_named() -> None:
    model = letters()
    assert said(model, {"word": "abba"}) == []
    assert said(model, {"word": "aßß"}) == ["'ß' is not known to the model: read as <unk>"]
    assert said(model, {"word": "xay"}) == ["'x' and 'y' are not known to the model: read as <unk>"]
    rows = [{"word": word} for word in ("ax", "ab", "yx")]
    assert said(model, *rows) == ["'x' and 'y' are not known to the model: read as <unk> (in 2 of 3 inputs)"]


def test_a_long_list_is_cut_short() -> None:
    (line,) = said(letters(), {"word": "efghijklmno"})
    assert line.startswith("'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l' and 3 more are not known")


@pytest.mark.parametrize("limit", [{"vocabulary": 3}, {"min_count": 2}])
def test_unknown_words_are_ordinary_where_rare_ones_were_left_out(limit: dict[str, int]) -> None:
    row = {"source": "a dog a dog runs", "twin": "a", "output": "A"}
    model = reader({"source": {"tokens": "word", **limit}, "twin": {"tokens": "word", "share": "source"}}, row)
    known = {"source": "a cat", "twin": "a"}
    assert said(model, known) == []
    lost = "no word of the input is known to the model: all are read as <unk>"
    assert said(model, known | {"source": "my cat"}) == [f"'source': {lost}"]
    assert said(model, known | {"twin": "cat"}) == [f"'twin': {lost}"]
    assert said(model, known, known | {"twin": "cat"}) == [
        "'twin': no word of 1 of 2 inputs is known to the model: all are read as <unk>"
    ]


def test_words_are_named_where_none_was_left_out() -> None:
    model = reader({"source": {"tokens": "word"}}, {"source": "a dog runs", "output": "A"})
    assert said(model, {"source": "a cat"}) == ["'cat' is not known to the model: read as <unk>"]


def test_inputs_that_are_cut_are_told_of() -> None:
    model = letters(max_length=3)
    assert said(model, {"word": "abc"}) == []
    assert said(model, {"word": "abcdz"}) == ["the input has 5 symbols: cut to the first 3 (inputs.word.max_length)"]
    assert said(model, {"word": "abc"}, {"word": "abcd"}) == [
        "1 of 2 inputs is longer than 3 symbols: cut to the first 3 (inputs.word.max_length)"
    ]


def test_given_outputs_are_read_where_they_are_scored() -> None:
    row = {"word": "ab", "output": "A Q"}
    assert said(letters(), row) == []
    assert said(letters(), row, outputs=True) == ["'output': 'Q' is not known to the model: read as <unk>"]


def test_what_any_model_of_an_ensemble_misses_is_told_once() -> None:
    pair = Model([letters().bundle, letters().bundle])
    assert said(pair, {"word": "q"}) == ["'q' is not known to the model: read as <unk>"]


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("predict", {"inputs": "aeß"}, "^'ß' is not known"),
        ("predict", {"inputs": "aex", "prefix": "Aß"}, "^prefix: 'ß' is not known"),
        ("look", {"inputs": "aeß"}, "^'ß' is not known"),
        ("look", {"inputs": "aeß", "target": "AX"}, "^'ß' is not known"),
        ("look", {"inputs": "aex", "target": "ß"}, "^target: 'ß' is not known"),
        ("explain", {"inputs": "aex", "target": "ß"}, "^target: 'ß' is not known"),
        ("encode", {"inputs": ["aeß"]}, "^'ß' is not known"),
        (
            "evaluate",
            {"data": [{"source": "aeß", "output": "A"}] * 2},
            "^'ß' is not known to the model: read as <unk>$",
        ),
        ("score", {"data": [{"source": "xea", "output": "ß"}]}, "^'output': 'ß' is not known"),
        ("faithful", {"data": [{"source": "aex", "output": "ß"}]}, "^'output': 'ß' is not known"),
    ],
)
def test_every_way_of_asking_tells(model: Model, method: str, given: dict[str, Any], message: str) -> None:
    with pytest.warns(Notice, match=message) as told:
        getattr(model, method)(**given)
    assert len(told) == 1
    assert told[0].filename == __file__


def test_what_is_gathered_is_not_told() -> None:
    model = letters()
    notices = Notices(model.bundles)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for first, word in enumerate(("xa", "ya")):
            model.predict([word], first_row=first, notices=notices)
            model.encode([word], notices=notices)
    assert notices.lines() == ["'x' and 'y' are not known to the model: read as <unk> (in 4 of 4 inputs)"]


def test_a_folder_may_have_a_plus_in_its_name_but_none_may_be_missing(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "a+b")
    assert len(seq2see.load(tmp_path / "a+b").bundles) == 1
    with pytest.raises(UserError, match=r"a\+b\+: a folder is missing"):
        seq2see.load(f"{tmp_path / 'a+b'}+")
