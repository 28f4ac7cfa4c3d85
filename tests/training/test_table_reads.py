"""How often a training reads its table from disk, and how often it builds a network."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seq2see
from seq2see.data.formats import Block
from seq2see.data.series_files import SeriesInput
from seq2see.data.tables import Table
from seq2see.model import EncoderDecoder
from seq2see.recipe import load_recipe
from seq2see.training import dataset
from seq2see.training.dataset import Corpus, read_corpus

PAIRS: dict[str, Any] = {"inputs": {"source": {"tokens": "character"}}, "output": {"tokens": "character"}}
LABELS: dict[str, Any] = {"inputs": {"source": {}}, "output": {"kind": "label"}}
PIECES: dict[str, Any] = {
    "inputs": {"source": {"tokens": "bpe", "vocabulary": 40}},
    "output": {"tokens": "bpe", "vocabulary": 30},
}
BAG: dict[str, Any] = LABELS | {"evaluation": {"baseline": "bag-of-words"}}
NUMBERS: dict[str, Any] = {
    "inputs": {"source": {"kind": "vector", "column": "numbers"}},
    "output": {"kind": "vector", "column": "numbers"},
    "encoder": {"kind": "dense", "size": 2},
}
STREAM: dict[str, Any] = {"inputs": {}, "output": {"column": "source"}, "data": {"stream": True}}
FILES: dict[str, Any] = {"kind": "series", "source": "files", "longest": 4}
RECIPES = {"pairs": PAIRS, "labels": LABELS, "pieces": PIECES, "bag": BAG, "numbers": NUMBERS, "stream": STREAM}


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of rows that were read, by the name of their table."""
    counts: Counter[str] = Counter()
    rows, blocks = Table.checked, Table.blocks

    def counted_rows(self: Table, *arguments: Any, **options: Any) -> Iterator[Any]:
        for row in rows(self, *arguments, **options):
            counts[Path(self.path).name] += 1
            yield row

    def counted_blocks(self: Table) -> Iterator[Block]:
        for block in blocks(self):
            counts[Path(self.path).name] += (block.content or b"").count(b"\n")
            yield block

    monkeypatch.setattr(Table, "checked", counted_rows)
    monkeypatch.setattr(Table, "blocks", counted_blocks)
    return counts


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.tsv"
    letters = [(a, b, c) for a in "abcdef" for b in "abcdef" for c in "xyz"]
    lines = [
        f"{a}{b}{c} é\t{'yes' if a < b else 'no'}\t{ord(a)} {ord(b)} {number / 7}\n"
        for number, (a, b, c) in enumerate(letters)
    ]
    path.write_text("source\toutput\tnumbers\n" + "".join(lines), encoding="utf-8")
    return path


ROWS = 108
PEEKS = 2
"""First rows that are read when a table is opened, and before --dev is."""
PASSES = {"pieces": 2, "bag": 2}
"""Byte-pair encoding learns from whole texts, and so does the bag of words, which are read once more."""


def contents(corpus: Corpus) -> dict[str, Any]:
    """All that a training takes from its tables."""
    stores = corpus.train.stores if isinstance(corpus.train, dataset.Dataset) else {}
    ids = {name: ([*store.flat], [*store.offsets]) for name, store in stores.items()}
    return {
        "ids": ids if stores else [*corpus.train.ids],  # type: ignore[union-attr]
        "dev": [dict(row) for row in corpus.dev],
        "baselines": [baseline.to_dict() for baseline in corpus.baselines],
        "notes": corpus.notes,
        "trained": (corpus.trained.inputs.tolist(), corpus.trained.pairs.tolist()),
    }


@pytest.mark.parametrize("name", RECIPES)
def test_a_small_table_is_read_once(name: str, table: Path, rows_read: Counter[str]) -> None:
    read_corpus(load_recipe(RECIPES[name]), table)
    passes = PASSES.get(name, 1)
    assert passes * ROWS <= rows_read["table.tsv"] <= passes * ROWS + PEEKS


@pytest.mark.parametrize("name", RECIPES)
def test_a_large_table_is_read_once(
    name: str, table: Path, rows_read: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = contents(read_corpus(load_recipe(RECIPES[name]), table))
    rows_read.clear()
    monkeypatch.setattr(dataset, "IN_MEMORY_TO", 0)
    monkeypatch.setattr(dataset, "BLOCK_CHARACTERS", 100)
    large = contents(read_corpus(load_recipe(RECIPES[name]), table, folder=table.parent))
    passes = PASSES.get(name, 1)
    assert passes * ROWS <= rows_read["table.tsv"] <= passes * ROWS + PEEKS
    assert large == small


def test_both_tables_are_read_once(table: Path, rows_read: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    dev = table.with_name("dev.tsv")
    dev.write_bytes(table.read_bytes())
    monkeypatch.setattr(dataset, "IN_MEMORY_TO", 0)
    read_corpus(load_recipe(NUMBERS), table, dev=dev)
    assert all(ROWS <= count <= ROWS + PEEKS for count in rows_read.values()), rows_read


@pytest.mark.parametrize("disk", ["free", "full"])
def test_a_file_of_a_series_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: str) -> None:
    counts: Counter[str] = Counter()
    original = SeriesInput.decode

    def counted(self: SeriesInput, path: str) -> list[Any]:
        counts[Path(path).name] += 1
        return original(self, path)

    def full(**_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(SeriesInput, "decode", counted)
    if disk == "full":
        monkeypatch.setattr(tempfile, "TemporaryFile", full)
    lines = ["series\toutput"]
    for number in range(20):
        np.save(tmp_path / f"{number}.npy", np.arange(12.0).reshape(6, 2) + number)
        lines.append(f"{number}.npy\t{'ab'[number % 2]}")
    table = tmp_path / "table.tsv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    recipe = load_recipe({"inputs": {"series": FILES}, "output": {"kind": "label"}})
    corpus = read_corpus(recipe, table)
    assert isinstance(corpus.train, dataset.Dataset)
    assert len(corpus.train) + len(corpus.dev) == 20
    assert len(counts) == 20
    if disk == "free":
        assert set(counts.values()) == {1}
    column, store = corpus.fields.inputs["series"], corpus.train.stores["series"]
    values = np.asarray(store[0]).view(np.float32).reshape(-1, 2) * column.deviation + column.mean  # type: ignore[attr-defined]
    assert values.tolist() == pytest.approx(np.arange(4.0, 12.0).reshape(4, 2))


def test_where_rows_cannot_be_written_the_table_is_read_again(
    table: Path, rows_read: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = contents(read_corpus(load_recipe(NUMBERS), table))
    rows_read.clear()

    def full(**_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(dataset, "IN_MEMORY_TO", 0)
    monkeypatch.setattr(dataset, "BLOCK_CHARACTERS", 100)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    assert contents(read_corpus(load_recipe(NUMBERS), table)) == small
    assert rows_read["table.tsv"] > 2 * ROWS


def test_no_temporary_file_is_left(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = table.parent / "run"
    folder.mkdir()
    monkeypatch.setattr(dataset, "IN_MEMORY_TO", 0)
    monkeypatch.setattr(dataset, "BLOCK_CHARACTERS", 100)
    read_corpus(load_recipe(PAIRS), table, folder=folder)
    assert not [*folder.iterdir()]


@pytest.mark.parametrize("name", ["pairs", "labels", "numbers", "stream"])
def test_a_training_builds_one_network(name: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apart from one on the meta device, which has no numbers: it shows whether the model fits into memory."""
    devices: Counter[str] = Counter()
    original = EncoderDecoder.__init__

    def counted(self: EncoderDecoder, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        devices[next(self.parameters()).device.type] += 1

    monkeypatch.setattr(EncoderDecoder, "__init__", counted)
    seq2see.train(RECIPES[name], table, out=table.parent / "run", updates=2, listeners=[])
    assert devices == {"cpu": 1, "meta": 1}
