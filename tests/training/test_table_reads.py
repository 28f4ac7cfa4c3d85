"""How often a training reads its table from disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seq2see.data.tables import Table
from seq2see.recipe import load_recipe
from seq2see.training import dataset
from seq2see.training.dataset import read_corpus

PAIRS: dict[str, Any] = {"inputs": {"source": {"tokens": "character"}}, "output": {"tokens": "character"}}
LABELS: dict[str, Any] = {"inputs": {"source": {}}, "output": {"kind": "label"}}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The tables that were read to their end, each as often as it was (a first row is also read to check the form)."""
    found: list[Path] = []
    original = Table.__iter__

    def counted(self: Table) -> Iterator[Any]:
        yield from original(self)
        found.append(Path(self.path))

    monkeypatch.setattr(Table, "__iter__", counted)
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.tsv"
    lines = [f"{a}{b}{c}\t{'yes' if a < b else 'no'}\n" for a in "abcdef" for b in "abcdef" for c in "xyz"]
    path.write_text("source\toutput\n" + "".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("recipe", [PAIRS, LABELS])
def test_a_small_table_is_read_once(recipe: dict[str, Any], table: Path, reads: list[Path]) -> None:
    read_corpus(load_recipe(recipe), table)
    assert reads == [table]


@pytest.mark.parametrize("recipe", [PAIRS, LABELS])
def test_a_large_table_is_read_to_be_split_counted_and_encoded(
    recipe: dict[str, Any], table: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = read_corpus(load_recipe(recipe), table)
    reads.clear()
    monkeypatch.setattr(dataset, "IN_MEMORY_TO", 0)
    large = read_corpus(load_recipe(recipe), table)
    assert reads == [table] * 3
    assert [dict(row) for row in large.dev] == [dict(row) for row in small.dev]
    assert [one.to_dict() for one in large.baselines] == [one.to_dict() for one in small.baselines]
    assert large.notes == small.notes
