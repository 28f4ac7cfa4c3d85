"""Fields: values to ids to tensors and back; built together, shared, saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.data.batches import Batch, Labels, Sequences, pad_lists
from seq2see.modalities.label import LabelField, LabelOutput
from seq2see.modalities.text import TextField
from seq2see.pipeline.fields import Fields
from seq2see.recipe.schema import Recipe
from seq2see.settings.columns import TextSettings
from tests.data.helpers import error_of

ROWS = [
    {"source": "A dog barks.", "output": "Ein Hund bellt."},
    {"source": "A cat sleeps!", "output": "Eine Katze schläft!"},
    {"source": "", "output": ""},
]
PAIRS = [
    {"premise": "a dog", "hypothesis": "an animal", "output": "yes"},
    {"premise": "a cat", "hypothesis": "a dog", "output": "no"},
    {"premise": "a cow", "hypothesis": "an animal", "output": "yes"},
]


def recipe(inputs: dict[str, Any], output: dict[str, Any] | None = None, **more: Any) -> Recipe:
    return Recipe.model_validate({"inputs": inputs, "output": {"kind": "text", **(output or {})}, **more})


def text_field(values: list[str], *, output: bool = False, **settings: Any) -> TextField:
    field = TextField(TextSettings(**settings), output=output)
    field.build(values)
    return field


@pytest.mark.parametrize("tokens", ["word", "character", "symbol", "bpe"])
def test_what_is_encoded_is_decoded(tokens: str) -> None:
    field = text_field([row["source"] for row in ROWS], tokens=tokens)
    for row in ROWS:
        assert field.decode(field.encode(row["source"])) == row["source"]
        assert field.join(field.symbols(row["source"])) == row["source"]


def test_decoding_stops_at_the_end_and_skips_what_is_no_text() -> None:
    field = text_field(["a b"], tokens="symbol")
    a, b = field.encode("a b")
    assert field.decode([2, a, 0, b, 3, a]) == "a b"
    assert field.decode(torch.tensor([a, 1, 3])) == "a <unk>"


def test_inputs_are_cut_and_outputs_are_not() -> None:
    assert text_field(["a b c"], max_length=2).symbols("a b c") == ["a", "b"]
    output = text_field(["a b c"], max_length=2, output=True)
    assert len(output.encode("a b c")) == 3
    assert not output.fits(output.encode("a b c"))
    assert output.fits(output.encode("a b"))


def test_collated_rows_are_padded_masked_and_ended() -> None:
    rows = pad_lists([[4, 5], [], [5]], eos=True)
    assert rows.ids.tolist() == [[4, 5, 3], [3, 0, 0], [5, 3, 0]]
    assert rows.mask.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert rows.lengths.tolist() == [3, 1, 2]
    plain = pad_lists([[4], []], eos=False)
    assert (plain.ids.tolist(), plain.mask.tolist()) == ([[4], [0]], [[True], [False]])


def test_empty_inputs_give_one_column_and_no_real_place() -> None:
    rows = text_field(["a"]).batch(["", ""])
    assert rows.ids.shape == (2, 1)
    assert not rows.mask.any()
    assert rows.symbols == [[], []]


def test_a_batch_of_values_keeps_unknown_symbols_as_they_were_written() -> None:
    batch = Fields.build(recipe({"source": {}}), lambda: iter(ROWS)).batch([{"source": "A zebra barks."}])
    assert batch.inputs["source"].symbols == [["A", "zebra", "barks", "."]]
    assert batch.inputs["source"].ids[0, 1] == 1
    assert batch.target is None


def test_batches_move_between_devices() -> None:
    fields = Fields.build(recipe({"source": {}}), lambda: iter(ROWS))
    moved = fields.batch(ROWS, target=True).to("meta")
    assert isinstance(moved, Batch)
    assert isinstance(moved.target, Sequences)
    assert moved.inputs["source"].ids.device.type == moved.target.mask.device.type == "meta"
    assert moved.inputs["source"].symbols is not None
    assert len(moved) == 3
    assert Labels(torch.tensor([1])).to("meta").ids.device.type == "meta"


def test_labels() -> None:
    field = LabelField(LabelOutput())
    field.build(["yes", "no", " yes "])
    assert (field.labels, field.counts, len(field.vocabulary)) == (["no", "yes"], [1, 2], 2)
    assert (field.encode("yes "), field.decode(1)) == (1, "yes")
    assert field.batch([field.labels[1], field.labels[0]]).ids.tolist() == [1, 0]
    assert error_of(lambda: field.encode("yess")) == "unknown label 'yess' (did you mean 'yes'?); known: no, yes"
    assert "found 1 ('yes')" in error_of(lambda: LabelField(LabelOutput()).build(["yes"]))


def test_a_vocabulary_can_be_shared_between_inputs_and_with_the_output() -> None:
    fields = Fields.build(recipe({"source": {}}, {"share": "source"}), lambda: iter(ROWS))
    assert fields.output.vocabulary is fields.inputs["source"].vocabulary
    assert {"dog", "Hund"} <= set(fields.output.vocabulary.ids)
    assert fields.output.vocabulary.counts[fields.output.vocabulary.ids["."]] == 2
    apart = Fields.build(recipe({"source": {}}), lambda: iter(ROWS))
    assert "Hund" not in apart.inputs["source"].vocabulary


def test_shared_bpe_is_learned_from_both_columns_each_in_its_own_form() -> None:
    rows = ROWS * 10
    wanted = recipe(
        {"source": {"tokens": "bpe", "vocabulary": 200, "case": "lower"}}, {"tokens": "bpe", "share": "source"}
    )
    fields = Fields.build(wanted, lambda: iter(rows))
    output = fields.output
    assert isinstance(output, TextField)
    assert output.symbols("Hund") == ["▁Hund"]
    assert isinstance(fields.inputs["source"], TextField)
    assert fields.inputs["source"].symbols("DOG") == ["▁dog"]


def test_rows_are_passed_over_once_and_once_more_only_to_learn() -> None:
    passes = 0

    def rows() -> Iterator[dict[str, str]]:
        nonlocal passes
        passes += 1
        return iter(ROWS)

    Fields.build(recipe({"source": {}}), rows)
    assert passes == 1
    Fields.build(recipe({"source": {"tokens": "bpe"}}, {"tokens": "bpe", "share": "source"}), rows)
    assert passes == 3


def test_an_input_called_output_is_refused() -> None:
    message = error_of(lambda: Fields.build(recipe({"output": {}}), lambda: iter([])))
    assert "the name 'output' is taken" in message


def test_no_rows_at_all_are_refused() -> None:
    assert error_of(lambda: Fields.build(recipe({"source": {}}), lambda: iter([]))) == "there are no rows to learn from"


@pytest.mark.parametrize("tokens", ["word", "character", "symbol", "bpe"])
def test_saved_and_loaded_fields_encode_alike(tmp_path: Path, tokens: str) -> None:
    wanted = recipe({"source": {"tokens": tokens}}, {"tokens": tokens, "share": "source"})
    fields = Fields.build(wanted, lambda: iter(ROWS))
    fields.save(tmp_path)
    again = Fields.load(tmp_path, wanted)
    one, other = fields.batch(ROWS, target=True), again.batch(ROWS, target=True)
    assert torch.equal(one.inputs["source"].ids, other.inputs["source"].ids)
    assert isinstance(one.target, Sequences)
    assert isinstance(other.target, Sequences)
    assert torch.equal(one.target.ids, other.target.ids)
    assert again.output.vocabulary is again.inputs["source"].vocabulary


def test_saved_labels_and_names_that_are_no_file_names(tmp_path: Path) -> None:
    wanted = Recipe.model_validate({"inputs": {"a/b": {}, "c d": {}}, "output": {"kind": "label"}})
    rows = [{"a/b": "x", "c d": "y", "output": label} for label in ("p", "q", "q")]
    Fields.build(wanted, lambda: iter(rows)).save(tmp_path)
    again = Fields.load(tmp_path, wanted)
    assert isinstance(again.output, LabelField)
    assert again.output.counts == [1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "labels-output.txt",
        "vocabulary-a%2Fb.txt",
        "vocabulary-c%20d.txt",
    ]


def test_a_folder_with_missing_or_foreign_files_is_refused(tmp_path: Path) -> None:
    wanted = recipe({"source": {"tokens": "bpe"}}, {"tokens": "bpe", "share": "source"})
    fields = Fields.build(wanted, lambda: iter(ROWS * 5))
    fields.save(tmp_path)
    pieces = tmp_path / "bpe-source.json"
    kept = pieces.read_bytes()
    pieces.unlink()
    assert str(pieces) in error_of(lambda: Fields.load(tmp_path, wanted))
    pieces.write_bytes(kept)
    vocabulary = tmp_path / "vocabulary-source.txt"
    whole = vocabulary.read_text()
    vocabulary.write_text(whole.replace("▁dog", "▁dot"))
    assert f"{pieces} does not fit {vocabulary}" in error_of(lambda: Fields.load(tmp_path, wanted))
    vocabulary.unlink()
    assert f"{vocabulary}: " in error_of(lambda: Fields.load(tmp_path, wanted))


def test_shared_vocabularies_whose_files_differ_are_refused(tmp_path: Path) -> None:
    wanted = recipe({"source": {}}, {"share": "source"})
    Fields.build(wanted, lambda: iter(ROWS)).save(tmp_path)
    path = tmp_path / "vocabulary-source.txt"
    path.write_text(path.read_text().replace("dog\t", "dot\t"))
    assert "share a vocabulary, but their files differ" in error_of(lambda: Fields.load(tmp_path, wanted))


def test_two_inputs_and_a_label() -> None:
    wanted = Recipe.model_validate(
        {"inputs": {"premise": {}, "hypothesis": {"share": "premise"}}, "output": {"kind": "label"}}
    )
    fields = Fields.build(wanted, lambda: iter(PAIRS))
    assert fields.label_output.labels == ["no", "yes"]
    assert list(fields.inputs) == ["premise", "hypothesis"]
    with pytest.raises(TypeError, match="LabelField"):
        _ = fields.text_output
    batch = fields.batch(PAIRS, target=True)
    assert isinstance(batch.target, Labels)
    assert batch.target.ids.tolist() == [1, 0, 1]
    assert batch.inputs["premise"].ids[0, 1] == batch.inputs["hypothesis"].ids[1, 1], "'dog' is the same symbol in both"
