"""Rows and streams that are too large for memory: mapped from disk, they are learned from all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.pipeline.dataset import Dataset, Stream
from seq2see.pipeline.dataset import digest_arrays as digest
from seq2see.recipe import load_recipe
from seq2see.training import dataset
from seq2see.training.dataset import read_corpus
from tests.system.small import write_table
from tests.training.tiny import ROWS, TEXT, run, same, text, weights, words


@pytest.mark.parametrize("kind", ["rows", "stream"])
def test_from_disk_as_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    recipe, data = (ROWS, words(tmp_path / "words.tsv")) if kind == "rows" else (TEXT, text(tmp_path / "text.txt"))
    run(recipe, data, tmp_path / "memory", updates=12)
    monkeypatch.setattr(dataset, "ON_DISK_FROM", 0)
    monkeypatch.setattr(dataset, "CACHED_FROM", 0)
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path / "cached"))
    run(recipe, data, tmp_path / "disk", updates=12)
    assert not (tmp_path / "memory" / "cache").exists()
    files = (tmp_path / "cached").rglob("*.ids") if kind == "rows" else [tmp_path / "disk" / "cache" / "output.ids"]
    assert sum(path.stat().st_size for path in files) > 0
    assert same(weights(tmp_path / "disk"), weights(tmp_path / "memory"))

    train = read_corpus(load_recipe(recipe), data, folder=tmp_path / "again").train
    mapped = train.ids if isinstance(train, Stream) else train.stores["output"].flat
    assert isinstance(mapped, np.memmap)
    assert isinstance(train, Dataset if kind == "rows" else Stream)


def test_a_long_dev_text_is_cut_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text.txt"
    path.write_text("abcdefghi\n" * 100, encoding="utf-8")
    monkeypatch.setattr(dataset, "DEV_CHARACTERS", 25)
    for given in (None, path):
        read = read_corpus(load_recipe(TEXT), path, dev=given)
        assert [row["output"] for row in read.dev] == ["abcdefghi", "abcdefghi", "abcde"]
        assert "dev: its first 25 characters are read for each report" in read.notes
    monkeypatch.setattr(dataset, "DEV_CHARACTERS", 1000)
    read = read_corpus(load_recipe(TEXT), path, dev=path)
    assert len(read.dev) == 100
    assert not any("dev: its first" in note for note in read.notes)


def test_a_hash_sees_every_number_and_its_place() -> None:
    ids = np.arange(100, dtype=np.int32)
    other = ids.copy()
    other[[7, 8]] = other[[8, 7]]
    assert digest(ids) == digest(ids[:40], ids[40:]) != digest(other)


def beside_dev(notes: list[str]) -> list[str]:
    """Notes without those about dev rows that are trained on, as dev is the same table here."""
    return [note for note in notes if not note.startswith("dev: ")]


def test_rows_with_an_empty_value_leave_training_and_dev_and_that_is_said(tmp_path: Path) -> None:
    full = [{"source": f"{a}{b}", "output": a} for a in "abcd" for b in "abcd"]
    table = write_table(tmp_path / "train.tsv", [*full, {"source": "", "output": "a"}, {"source": "b", "output": " "}])
    dev = write_table(tmp_path / "dev.tsv", [full[0], {"source": "a", "output": ""}])
    read = read_corpus(load_recipe(ROWS), table, dev=dev)
    assert isinstance(read.train, Dataset)
    assert (len(read.train), len(read.dev)) == (16, 1)
    assert beside_dev(read.notes) == [
        "train.tsv: 1 row with an empty 'source' left out, the first at line 18",
        "train.tsv: 1 row with an empty 'output' left out, the first at line 19",
        "dev.tsv: 1 row with an empty 'output' left out, the first at line 3",
    ]
    split = read_corpus(load_recipe(ROWS), table)
    assert any("of 16 rows set aside for dev" in note for note in split.notes)


def test_empty_lines_of_a_stream_are_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("abc\n\n" * 20, encoding="utf-8")
    read = read_corpus(load_recipe(TEXT), path, dev=path)
    assert isinstance(read.train, Stream)
    assert len(read.train) == 20 * 5
    assert beside_dev(read.notes) == []


def test_what_max_length_does_to_rows_is_said(tmp_path: Path) -> None:
    rows = [{"source": "ab" * n, "output": "a" * n} for n in range(1, 7)]
    table = write_table(tmp_path / "pairs.tsv", rows)
    recipe = load_recipe(ROWS, overrides=["inputs.source.max_length=5", "output.max_length=4"])
    notes = read_corpus(recipe, table, dev=table).notes
    assert beside_dev(notes) == [
        "2 of 4 inputs 'source' were longer than max_length 5 and were cut",
        "2 rows left out: the output is longer than output.max_length 4",
    ]


@pytest.mark.parametrize(("name", "said"), [("x.tsv", True), ("x.jsonl", False)])
def test_a_first_line_taken_for_names_nobody_asked_for_is_told_of(tmp_path: Path, name: str, said: bool) -> None:
    table = write_table(tmp_path / name, [{"dog": f"a{letter}", "Hund": letter} for letter in "abc"])
    columns = "columns: 'dog' -> 'Hund' (the only two)"
    wanted = f"{columns}; the first line of x.tsv was read as their names" if said else columns
    assert beside_dev(read_corpus(load_recipe(ROWS), table, dev=table).notes) == [wanted]
    named = read_corpus(load_recipe(ROWS), table, dev=table, columns=["dog", "Hund"])
    assert beside_dev(named.notes) == []


def test_a_table_of_one_row_is_called_so(tmp_path: Path) -> None:
    table = tmp_path / "one.tsv"
    table.write_text("source\toutput\na\tb\n", encoding="utf-8")
    with pytest.raises(UserError, match="the table has one row"):
        read_corpus(load_recipe({"inputs": {"source": {}}}), table)


def several_outputs(notes: list[str]) -> list[str]:
    return [note for note in notes if "several outputs" in note]


@pytest.mark.parametrize("tokens", ["word", "bpe"])
def test_inputs_with_several_outputs_are_counted_and_one_is_named(tmp_path: Path, tokens: str) -> None:
    rows = [f"w{number}\tx{number % 7}" for number in range(200)] + ["w3\tother", "w5\tx5", "w8\tother", " w8\tthird"]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(["source\ttarget", *rows]) + "\n", encoding="utf-8")
    recipe = load_recipe({"inputs": {"source": {"tokens": tokens}}, "output": {"column": "target"}})
    (note,) = several_outputs(read_corpus(recipe, path).notes)
    assert "2 of 200 inputs" in note
    assert "'w3': 'x3' (line 5) and 'other' (line 202)" in note


def test_inputs_with_several_outputs_are_counted_among_the_rows_set_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("source\toutput\n" + "".join(f"w{n}\t{m}\n" for n in range(20) for m in "ab"), encoding="utf-8")
    recipe = load_recipe({"inputs": {"source": {}}})
    (note,) = several_outputs(read_corpus(recipe, path).notes)
    assert "20 of 20 inputs" in note


def test_numbers_and_labels_with_several_outputs_are_counted_and_a_stream_has_none(tmp_path: Path) -> None:
    path = tmp_path / "numbers.tsv"
    path.write_text(
        "x\toutput\n" + "".join(f"{n} 1\t{'ab'[n % 2]}\n" for n in range(30)) + "7 1\ta\n", encoding="utf-8"
    )
    recipe = load_recipe(
        {"inputs": {"x": {"kind": "vector"}}, "output": {"kind": "label"}, "encoder": {"kind": "dense"}}
    )
    (note,) = several_outputs(read_corpus(recipe, path).notes)
    assert "1 of 30 inputs" in note
    assert not several_outputs(read_corpus(load_recipe(TEXT), text(tmp_path / "text.txt")).notes)
