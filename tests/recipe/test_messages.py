"""Messages as a user reads them: where, what was written, what is allowed, and what was perhaps meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.recipe.refusing import LABEL, ONE, mentions, message_of

READ: list[tuple[dict[str, Any], str, list[str]]] = [
    ({"decoder": {"sizes": 3}}, "decoder.sizes: unknown key", ["did you mean 'size'?", "allowed:"]),
    ({"decoder": {"cell": "gur"}}, "decoder.cell: 'gur'", ["did you mean 'gru'?", "allowed: rnn, gru, lstm"]),
    ({"decoder": {"size": "big"}}, "decoder.size: ", ["whole number", "got 'big'"]),
    ({**ONE, "attention": {"over": "sorce"}}, "attention.over: ", ["did you mean 'source'?", "allowed: source"]),
    ({**LABEL, "search": {"beam": 4}}, "search.beam: has no effect here: ", ["label"]),
    ({**ONE, "attention": "dot", "encoder": {"size": 100}}, "attention.score: dot", ["256", "200", "decoder.size=200"]),
]


@pytest.mark.parametrize(("recipe", "start", "facts"), READ, ids=[start for _, start, _ in READ])
def test_a_message_begins_with_the_key_and_says_what_is_allowed(
    recipe: dict[str, Any], start: str, facts: list[str]
) -> None:
    message = message_of(recipe)
    assert message.startswith(f"recipe: {start}")
    assert [fact for fact in facts if fact not in message] == []
    assert "\n" not in message


def test_several_problems_are_counted_and_stand_on_a_line_each() -> None:
    recipe = {"decodr": 1, "decoder": {"join": "x", "size": -1}, "output": {"kind": "label", "case": "lower"}}
    first, *lines = message_of(recipe).splitlines()
    assert first == "recipe: 4 problems"
    paths = [line.split(":")[0] for line in lines]
    assert paths == ["  output.case", "  decoder.size", "  decoder.join", "  decodr"]


def test_only_the_first_of_many_problems_are_listed() -> None:
    first, *lines = message_of({f"key{number}": 1 for number in range(30)}).splitlines()
    assert mentions(first, "30")
    assert len(lines) == 21
    assert mentions(lines[-1], "10")


FILES: list[tuple[str, str, list[str]]] = [
    ("inputs:\n  source: {}\n  - x\n", ", line 3, column 3: ", ["YAML"]),
    ("inputs: [\n", ", line 2, column 1: ", ["YAML"]),
    ("decoder:\n  size: 3\n  size: 4\n", ", line 3, column 3: ", ["'size'", "twice"]),
    ("task: !!python/object/apply:os.getcwd []\n", ", line 1, column 7: ", ["tag", "!!python"]),
    ("- a\n- b\n", ": ", ["mapping", "['a', 'b']"]),
    ("", ": ", ["mapping", "empty"]),
    ("decoder: {sise: 3}\n", ": decoder.sise: ", ["'size'"]),
]


@pytest.mark.parametrize(("text", "place", "facts"), FILES)
def test_a_file_is_named_with_the_line_at_fault(text: str, place: str, facts: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    for source in (path, str(path)):
        message = message_of(source)
        assert message.startswith(f"{path}{place}")
        assert [fact for fact in facts if fact not in message] == []


def test_a_file_that_is_no_text_or_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"task: \xff\xfe\x00")
    message = message_of(path)
    assert message.startswith(f"{path}, line 1: ")
    assert "UTF-8" in message
    assert mentions(message, "6")  # the byte
    path = tmp_path / "none.yaml"
    message = message_of(path)
    assert message.startswith(f"{path}: ")
    assert mentions(message, "missing")


def test_a_models_folder_is_no_recipe_but_holds_one(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("task: x\n", encoding="utf-8")
    message = message_of(str(tmp_path))
    assert message.startswith(f"{tmp_path}: ")
    assert f"{tmp_path}/recipe.yaml" in message


def test_an_unknown_recipe_is_refused_with_the_names_there_are() -> None:
    message = message_of("translatoin")
    assert "'translatoin'" in message
    assert "did you mean 'translation'?" in message
    assert mentions(message, "speech-recognition")
