"""Small models trained once for all tests of this room: enough to have opinions, not to be good."""

from __future__ import annotations

from pathlib import Path

import pytest

import seq2see
from seq2see.api import Model

SMALL = [
    "encoder={size: 12, embedding: {size: 8}}",
    "decoder.size=24",
    "decoder.embedding.size=8",
    "attention.size=10",
    "training.batch_tokens=400",
    "training.learning_rate=0.01",
    "training.report_every=200",
]
PAIRS = {
    "inputs": {"source": {"tokens": "character"}},
    "output": {"tokens": "character"},
    "decoder": {"start": "source"},
    "attention": {"score": "additive"},
}


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "pairs.tsv"
    words = [a + b + c for a in "abcd" for b in "aeio" for c in "xyzw"]
    path.write_text("source\toutput\n" + "".join(f"{w}\t{w.upper()}\n" for w in words), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def model(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    out = tmp_path_factory.mktemp("runs") / "pairs"
    return seq2see.train(PAIRS, table, out=out, overrides=SMALL, updates=240, listeners=[])


@pytest.fixture(scope="session")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("labels")
    path = folder / "labels.csv"
    rows = [(f"{a} {b}", f"{a} {c}", "same" if b == c else "other") for a in "abcd" for b in "xyz" for c in "xyz"]
    path.write_text("one,two,label\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows), encoding="utf-8")
    recipe = {
        "inputs": {"one": {}, "two": {"share": "one"}},
        "output": {"kind": "label", "column": "label"},
        "decoder": {"start": ["one", "two"], "join": "compare"},
    }
    small = [line for line in SMALL if "decoder.embedding" not in line]
    return seq2see.train(recipe, path, out=folder / "run", overrides=small, updates=200, listeners=[])
