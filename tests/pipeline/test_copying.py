"""Words of an input as the output writes them: in batches and in the store, for every kind of token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seq2see.data.vocabulary import EOS, UNK
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields, as_sequences
from seq2see.recipe import load_recipe

SEEN = [{"source": "I am Tom", "output": "hello Tom"}, {"source": "I am Ida", "output": "hello Ida"}]
NEW = [
    {"source": "Xo and Yi and Xo", "output": "hello Yi Xo Zu"},
    {"source": "I am Tom", "output": "hello Xo"},
    {"source": "Yi", "output": "Yi"},
]


def fields(rows: list[dict[str, str]] = SEEN, **settings: Any) -> Fields:
    recipe = load_recipe(
        {
            "inputs": {"source": settings.get("source", {})},
            "output": settings.get("output", {}),
            "decoder": {"copy_from": "source"},
        }
    )
    return Fields.build(recipe, lambda: iter(rows))


def test_further_words_are_counted_input_by_input() -> None:
    made = fields()
    known = made.output.vocabulary
    batch = made.batch(NEW, target=True)
    copyable = batch.inputs["source"].copyable
    assert copyable is not None
    v = len(known)
    assert copyable.words == [["Xo", "and", "Yi"], ["I", "am"], ["Yi"]]
    assert copyable.ids[0].tolist() == [v, v + 1, v + 2, v + 1, v]
    assert copyable.ids[1, :3].tolist() == [v, v + 1, known.ids["Tom"]]
    target = as_sequences(batch.target)  # type: ignore[arg-type]
    assert target.ids[0].tolist() == [known.ids["hello"], v + 2, v, UNK, EOS]
    assert target.ids[1].tolist()[:3] == [known.ids["hello"], UNK, EOS], "Xo is a word of another input"
    assert known.decode(target.ids[0].tolist(), copyable.words[0])[1:3] == ["Yi", "Xo"]


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_is_stored_is_what_is_read(tmp_path: Path, on_disk: bool) -> None:
    made = fields()
    direct = made.batch(NEW, target=True)
    stored = Dataset.build(made, NEW, folder=tmp_path if on_disk else None).batch([0, 1, 2])
    for batch in (direct, stored):
        assert batch.inputs["source"].copyable is not None
        assert batch.target is not None
    assert stored.inputs["source"].copyable.ids.equal(direct.inputs["source"].copyable.ids)  # type: ignore[union-attr]
    assert stored.target.ids.equal(direct.target.ids)  # type: ignore[union-attr]
    assert stored.inputs["source"].ids.equal(direct.inputs["source"].ids)


def test_a_recipe_that_does_not_copy_stores_nothing_more() -> None:
    recipe = load_recipe({"inputs": {"source": {}}})
    made = Fields.build(recipe, lambda: iter(SEEN))
    assert list(Dataset.build(made, SEEN).stores) == ["source", "output"]
    assert made.batch(SEEN).inputs["source"].copyable is None


def test_words_are_copied_in_the_form_the_output_has() -> None:
    made = fields(output={"case": "lower"})
    copyable = made.batch([{"source": "I am Tom Xo", "output": ""}]).inputs["source"].copyable
    assert copyable is not None
    assert copyable.ids[0, 2] == made.output.vocabulary.ids["tom"]
    assert copyable.words == [["i", "am", "xo"]]


@pytest.mark.parametrize("tokens", ["character", "symbol", "bpe"])
def test_every_kind_of_token_can_be_copied(tokens: str) -> None:
    shared = {"share": "source"} if tokens == "bpe" else {}
    made = fields(source={"tokens": tokens}, output={"tokens": tokens, **shared})
    row = {"source": "I am Q@é", "output": "hello Q@é"}
    batch = made.batch([row], target=True)
    copyable = batch.inputs["source"].copyable
    assert copyable is not None
    assert copyable.words is not None
    ids = made.target_ids(row, row["output"])
    assert UNK not in ids
    assert made.text_output.join(made.output.vocabulary.decode(ids, copyable.words[0])) == row["output"]


def test_an_input_that_is_cut_gives_the_words_that_are_read() -> None:
    made = fields(source={"max_length": 2})
    assert made.copying is not None
    assert made.copied_words({"source": "Xo Yi Zu"}) == ["Xo", "Yi"]


@pytest.mark.parametrize("on_disk", [False, True])
def test_words_of_documents_are_counted_through_all_sentences(tmp_path: Path, on_disk: bool) -> None:
    raw = {
        "inputs": {"source": {"kind": "texts", "sentences": "|||"}},
        "encoder": {"kind": "hierarchical"},
        "attention": {"over": "source.words", "through": "sentences"},
        "decoder": {"copy_from": "source"},
    }
    made = Fields.build(load_recipe(raw), lambda: iter(SEEN))
    rows = [{"source": "Xo ||| and Yi ||| Xo", "output": "Yi Xo"}, {"source": "Tom", "output": "Xo"}]
    v, tom = len(made.output.vocabulary), made.output.vocabulary.ids["Tom"]
    direct = made.batch(rows, target=True)
    stored = Dataset.build(made, rows, folder=tmp_path if on_disk else None).batch([0, 1])
    for batch in (direct, stored):
        copyable = batch.inputs["source"].copyable
        assert copyable is not None
        assert batch.target is not None
        assert copyable.ids[0].tolist() == [v, v + 1, v + 2, v]
        assert copyable.ids[1, 0].item() == tom
        assert batch.target.ids.tolist() == [[v + 2, v, EOS], [UNK, EOS, 0]]
    assert direct.inputs["source"].copyable.words == [["Xo", "and", "Yi"], []]
