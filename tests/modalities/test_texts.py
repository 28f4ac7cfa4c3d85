"""Columns of several texts: two ragged levels, stored in one, and batches of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from seq2see.data.columns import resolve
from seq2see.data.tables import read
from seq2see.errors import UserError
from seq2see.modalities.texts import TextsField, TextsInput
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.dataset import open_table, read_corpus

RECIPE = {
    "inputs": {"document": {"kind": "texts", "sentences": "|||"}},
    "output": {"kind": "label"},
    "encoder": {"kind": "hierarchical"},
}
VALUES = ["a b c ||| d", "b", "c d ||| a a a ||| b c", "d ||| |||  a"]


def rows() -> list[dict[str, str]]:
    return [{"document": value, "output": "yes" if i % 2 else "no"} for i, value in enumerate(VALUES)]


@pytest.fixture
def fields() -> Fields:
    return Fields.build(load_recipe(RECIPE), lambda: iter(rows()))


def test_batches_from_store_and_from_values_are_equal_and_say_what_stands_where(fields: Fields, tmp_path: Path) -> None:
    data = Dataset.build(fields, rows(), folder=tmp_path)
    chosen = [2, 0, 3]
    stored = data.batch(chosen).inputs["document"]
    given = fields.batch([rows()[i] for i in chosen]).inputs["document"]
    assert isinstance(data.stores["document"].flat, np.memmap)
    assert stored.ids.tolist() == given.ids.tolist()
    assert stored.mask.tolist() == given.mask.tolist()
    assert given.symbols == [[["c", "d"], ["a", "a", "a"], ["b", "c"]], [["a", "b", "c"], ["d"]], [["d"], ["a"]]]
    assert stored.mask.sum(-1).tolist() == [[2, 3, 2], [3, 1, 0], [1, 1, 0]]
    names = fields.inputs["document"].vocabulary.symbols
    spelt = [[[names[i] for i in one if i] for one in document if any(one)] for document in stored.ids.tolist()]
    assert spelt == given.symbols


def test_a_batch_never_has_an_empty_axis(fields: Fields) -> None:
    batch = fields.inputs["document"].batch(["", " ||| "])
    assert batch.ids.shape == (2, 1, 1)
    assert not batch.mask.any()


def test_a_row_is_as_wide_as_its_words_and_sentences(fields: Fields) -> None:
    assert Dataset.build(fields, rows()).widths[:, 0].tolist() == [4 + 2, 1 + 1, 7 + 3, 2 + 2]


@pytest.mark.parametrize(("keep", "kept"), [("first", [["a", "b"], ["d"]]), ("last", [["d"], ["e", "f"]])])
def test_what_is_too_long_is_cut(keep: str, kept: list[list[str]]) -> None:
    field = TextsField(TextsInput(sentences="|||", max_length=2, max_sentences=2, keep=keep))
    assert field.sentences("a b c ||| d ||| e f") == kept
    assert field.is_cut(field.read("a b c ||| d"))
    assert not field.is_cut(field.read("a b ||| d"))
    assert field.limit == "max_sentences 2 or max_length 2"


def test_cutting_is_counted_and_said(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("document\toutput\n" + "".join(f"{'a ' * i}||| b\t{'yn'[i % 2]}\n" for i in range(1, 9)), "utf-8")
    recipe = load_recipe({**RECIPE, "inputs": {"document": {**RECIPE["inputs"]["document"], "max_length": 6}}})
    notes = read_corpus(recipe, path, dev=path).notes
    assert "2 of 8 inputs 'document' were longer than max_length 6 and were cut" in notes


def test_lists_of_texts_stand_in_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    given = [{"document": ["Hello. You?", "Fine ||| here"], "output": "a"}, {"document": "x ||| y", "output": "b"}]
    path.write_text("".join(json.dumps(one) + "\n" for one in given), "utf-8")
    table, found = open_table(load_recipe(RECIPE), path, None)
    values = [row["document"] for row in found.rows(table)]
    assert values == ["Hello. You? ||| Fine   here", "x ||| y"]
    field = TextsField(TextsInput(sentences="|||"))
    assert [len(field.sentences(value)) for value in values] == [2, 2]


def test_what_is_no_list_of_texts_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"document": ["a", null], "output": "x"}\n', "utf-8")
    table, found = open_table(load_recipe(RECIPE), path, None)
    with pytest.raises(
        UserError, match=r"t.jsonl, line 1, column 'document': expected a list of texts, found nothing \(null\) in it"
    ):
        list(found.rows(table))
    plain = resolve(["document"], [("document", "document")], path=path)
    path.write_text('{"document": ["a"]}\n', "utf-8")
    with pytest.raises(UserError, match="expected text, found a list"):
        list(plain.rows(read(path)))


def test_words_are_counted_without_the_marks(fields: Fields) -> None:
    assert "|||" not in fields.inputs["document"].vocabulary.symbols


def test_the_vocabulary_is_learned_by_pieces_and_shared() -> None:
    raw = {
        "inputs": {"document": {"kind": "texts", "sentences": "|||", "tokens": "bpe", "vocabulary": 40}},
        "output": {"kind": "text", "tokens": "bpe", "share": "document"},
        "encoder": {"kind": "hierarchical"},
    }
    learned = Fields.build(
        load_recipe(raw), lambda: iter([{"document": "low lower ||| lowest low", "output": "lower"}] * 9)
    )
    assert learned.text_output.vocabulary is learned.inputs["document"].vocabulary
    assert learned.text_output.decode(learned.text_output.encode("lowest")) == "lowest"
