"""Runs small enough to be repeated: a table of short words to copy, a text, and recipes for both."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

import seq2see
from seq2see.api import Model
from seq2see.pipeline.weights import read_tensors
from seq2see.training.checkpoints import Checkpoint, latest_checkpoint
from tests.system.small import RecordingListener, write_table

SIZES: dict[str, Any] = {
    "encoder": {"size": 6, "bidirectional": False, "dropout": 0.2, "embedding": {"size": 4}},
    "decoder": {"size": 6, "dropout": 0.2, "embedding": {"size": 4}},
}
HOW: dict[str, Any] = {"threads": 1, "samples": 1, "epochs": 0, "learning_rate": 0.01}

ROWS: dict[str, Any] = {
    "task": "copying",
    "inputs": {"source": {"tokens": "character"}},
    "output": {"tokens": "character"},
    **SIZES,
    "attention": {"score": "dot"},
    "training": {**HOW, "dev_rows": 4, "batch_tokens": 40},
    "search": {"max_length": 5},
    "evaluation": {"metrics": ["cer"]},
}
TEXT: dict[str, Any] = {
    "task": "reading",
    "output": {"tokens": "character", "column": "text"},
    "data": {"stream": True},
    "decoder": {**SIZES["decoder"], "cell": "lstm", "output": "state"},
    "training": {**HOW, "bptt": 5, "lanes": 3, "samples": 0},
}


def words(path: Path, *, count: int = 60, seed: int = 1) -> Path:
    """Words of two or three letters, each beside itself."""
    draw = random.Random(seed)
    made = ["".join(draw.choices("abcd", k=draw.randint(2, 3))) for _ in range(count)]
    return write_table(path, [{"source": word, "output": word} for word in made])


def text(path: Path) -> Path:
    draw = random.Random(2)
    path.write_text("\n".join("".join(draw.choices("abc", k=9)) for _ in range(40)) + "\n", encoding="utf-8")
    return path


def run(recipe: Any, data: Path | None, folder: Path, overrides: Sequence[str] = (), **given: Any) -> Model:
    """Train in silence."""
    given.setdefault("listeners", [RecordingListener()])
    return seq2see.train(recipe, data=data, out=folder, overrides=list(overrides), **given)


def weights(folder: Path) -> dict[str, Tensor]:
    return read_tensors(folder / "model.safetensors")


def last_checkpoint(folder: Path) -> Checkpoint:
    found = latest_checkpoint(folder / "checkpoints")
    assert found is not None
    return found


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Bit for bit."""
    return one.keys() == other.keys() and all(bool((one[name] == other[name]).all()) for name in one)


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a .jsonl table."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
