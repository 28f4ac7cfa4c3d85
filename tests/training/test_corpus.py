"""Rows and streams that are too large for memory: mapped from disk, they are learned from all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seq2see.data.dataset import Dataset
from seq2see.data.streams import Stream
from seq2see.recipe import load_recipe
from seq2see.training import corpus
from seq2see.training.corpus import read_corpus
from seq2see.training.feeds import digest
from tests.training.tiny import ROWS, TEXT, run, same, text, weights, words


@pytest.mark.parametrize("kind", ["rows", "stream"])
def test_from_disk_as_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    recipe, data = (ROWS, words(tmp_path / "words.tsv")) if kind == "rows" else (TEXT, text(tmp_path / "text.txt"))
    run(recipe, data, tmp_path / "memory", updates=12)
    monkeypatch.setattr(corpus, "ON_DISK_FROM", 0)
    run(recipe, data, tmp_path / "disk", updates=12)
    assert not (tmp_path / "memory" / "cache").exists()
    assert (tmp_path / "disk" / "cache" / "output.ids").stat().st_size > 0
    assert same(weights(tmp_path / "disk"), weights(tmp_path / "memory"))

    train = read_corpus(load_recipe(recipe), data, folder=tmp_path / "again").train
    mapped = train.ids if isinstance(train, Stream) else train.stores["output"].flat
    assert isinstance(mapped, np.memmap)
    assert isinstance(train, Dataset if kind == "rows" else Stream)


def test_a_long_dev_text_is_cut_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text.txt"
    path.write_text("abcdefghi\n" * 100, encoding="utf-8")
    monkeypatch.setattr(corpus, "DEV_CHARACTERS", 25)
    for given in (None, path):
        read = read_corpus(load_recipe(TEXT), path, dev=given)
        assert [row["output"] for row in read.dev] == ["abcdefghi", "abcdefghi", "abcde"]
        assert "dev: its first 25 characters are read for each report" in read.notes
    monkeypatch.setattr(corpus, "DEV_CHARACTERS", 1000)
    read = read_corpus(load_recipe(TEXT), path, dev=path)
    assert len(read.dev) == 100
    assert not any("dev: its first" in note for note in read.notes)


def test_a_hash_sees_every_number_and_its_place() -> None:
    ids = np.arange(100, dtype=np.int32)
    other = ids.copy()
    other[[7, 8]] = other[[8, 7]]
    assert digest(ids) == digest(ids[:40], ids[40:]) != digest(other)
