"""Columns of sets: how elements are told apart, in tables of text and as lists, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.modalities.set import SetField, SetInput
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.dataset import open_table

SPLIT: list[tuple[dict[str, Any], str, list[str]]] = [
    ({}, "d a  c a", ["d", "a", "c", "a"]),
    ({"tokens": "character"}, "daca", ["d", "a", "c", "a"]),
    ({"tokens": "word"}, "well-known, isn't", ["well-known", ",", "isn't"]),
    ({"separator": ";"}, "new york; oslo;; oslo ;", ["new york", "oslo", "oslo"]),
    ({"separator": "newline"}, "new york\noslo", ["new york", "oslo"]),
    ({"separator": "tab", "case": "lower"}, "New York\tOslo", ["new york", "oslo"]),
]


def recipe(**settings: Any) -> Any:
    return load_recipe(
        {
            "inputs": {"items": {"kind": "set", **settings}},
            "output": {"tokens": "symbol"},
            "encoder": {"kind": "deep-sets"},
        }
    )


@pytest.mark.parametrize(("settings", "value", "elements"), SPLIT)
def test_elements_are_told_apart_as_they_are_written(
    settings: dict[str, Any], value: str, elements: list[str], tmp_path: Path
) -> None:
    field = SetField(SetInput(**settings))
    field.build([value])
    assert field.places(value) == elements
    column = field.batch([value])
    assert column.ids.shape == (1, len(elements))
    assert len(set(column.ids[0].tolist())) == len(set(elements))
    field.save(tmp_path, "items")
    again = SetField.load(tmp_path, "items", SetInput(**settings))
    assert again.encode(value) == field.encode(value)


@pytest.mark.parametrize(
    ("settings", "elements"),
    [
        ({}, ["b", "a", "3"]),
        ({"tokens": "character"}, ["b", "a", "3"]),
        ({"tokens": "word"}, ["b", ".", "3.5"]),
        ({"separator": ";"}, ["new york", "oslo"]),
        ({"separator": "newline"}, ["new york", "oslo"]),
    ],
)
def test_lists_are_taken_apart_into_their_elements(settings: dict[str, Any], elements: list[str]) -> None:
    field = SetField(SetInput(**settings))
    assert field.places(SetField(SetInput(**settings)).from_list(elements)) == elements


@pytest.mark.parametrize(
    ("settings", "element", "message"),
    [
        ({}, "new york", "element 'new york' is not one symbol; set the input's separator to a mark that no element"),
        ({}, "", "element '' is not one symbol"),
        ({"tokens": "character"}, "ab", "element 'ab' is not one character"),
        ({"tokens": "word"}, "a b", "element 'a b' is not one word"),
        ({"separator": ";"}, "a;b", "element 'a;b' holds the separator ';'"),
    ],
)
def test_a_list_whose_elements_would_fall_apart_is_refused(
    settings: dict[str, Any], element: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"items": ["x", element], "output": "x"}) + "\n", "utf-8")
    table, found = open_table(recipe(**settings), path, None)
    with pytest.raises(UserError) as raised:
        list(found.rows(table))
    assert f"t.jsonl, line 1, column 'items': {message}" in str(raised.value)


def test_lists_and_texts_stand_side_by_side_and_numbers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"items": [10, 2, "x"], "output": "2 10 x"}, {"items": "2 10", "output": "2 10"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    made = recipe()
    table, found = open_table(made, path, None)
    values = [dict(row) for row in found.rows(table)]
    assert [row["items"] for row in values] == ["10 2 x", "2 10"]
    fields = Fields.build(made, lambda: iter(values))
    assert sorted(fields.read(values[1])["items"].ids) == sorted(fields.read({"items": "10 2"})["items"].ids)


def test_parquet_holds_lists_too(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"items": [["b", "a"]], "output": ["a b"]}), tmp_path / "t.parquet")
    table, found = open_table(recipe(), tmp_path / "t.parquet", None)
    assert [row["items"] for row in found.rows(table)] == ["b a"]
