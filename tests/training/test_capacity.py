"""Models that no machine, or not this one, can hold are refused before anything is built."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seq2see.errors import UserError
from seq2see.training import memory
from tests.training.tiny import ROWS, run, weights, words

ADDITIVE = ["attention.score=additive", "decoder.start_by=dense"]


LARGE = ["encoder.size", "decoder.size", "attention.size"]


@pytest.mark.parametrize(
    ("key", "size", "said"),
    [
        *((key, 1_000_000, r"too large for this machine: .* GB .* large: {key} 1,000,000$") for key in LARGE[:2]),
        *((key, size, r"{key}[:=]") for key in [*LARGE, "encoder.layers"] for size in (99_999_999_999, 10**30)),
        ("encoder.layers", 100_000, r"{key}: "),
    ],
)
def test_absurd_sizes_are_refused_with_their_key(tmp_path: Path, key: str, size: int, said: str) -> None:
    with pytest.raises(UserError, match=said.format(key=key)):
        run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", [*ADDITIVE, f"{key}={size}"], updates=1)
    assert not (tmp_path / "model").exists()


def test_sizes_that_are_too_large_together_are_all_named(tmp_path: Path) -> None:
    how = [*ADDITIVE, "encoder.size=30000", "decoder.size=90000", "training.optimizer=sgd", "training.momentum=0.9"]
    with pytest.raises(UserError, match=r"large: decoder.size 90,000, encoder.size 30,000$"):
        run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", how, updates=1)


def test_what_is_counted_is_what_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = words(tmp_path / "words.tsv")
    run(ROWS, data, tmp_path / "model", updates=1)
    built = sum(tensor.numel() for tensor in weights(tmp_path / "model").values())
    monkeypatch.setattr(memory, "machine_memory", lambda: built * 16)
    run(ROWS, data, tmp_path / "fits", updates=1)
    monkeypatch.setattr(memory, "machine_memory", lambda: built * 16 - 1)
    with pytest.raises(UserError, match="too large for this machine"):
        run(ROWS, data, tmp_path / "not", updates=1)
    run(ROWS, data, tmp_path / "plain", ["training.optimizer=sgd"], updates=1)  # which keeps nothing of its own


def test_where_the_system_does_not_tell_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", silent)
    assert memory.machine_memory() is None
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", updates=1)
