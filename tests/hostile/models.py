"""Small untrained models of several kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seq2see import api

SMALL: dict[str, Any] = {
    "encoder": {"size": 6, "embedding": {"size": 4}},
    "decoder": {"size": 8, "embedding": {"size": 4}},
    "attention": {"score": "additive", "size": 4},
    "training": {"dev_rows": 4, "samples": 0, "updates": 1, "epochs": 0},
    "search": {"max_length": 20},
}
TEXT = {
    tokens: {"inputs": {"source": {"tokens": tokens}}, "output": {"tokens": tokens}}
    for tokens in ("bpe", "character", "word", "symbol")
}
KINDS: dict[str, dict[str, Any]] = {
    **TEXT,
    "copy": {
        "inputs": {"source": {"tokens": "word"}},
        "output": {"tokens": "word"},
        "decoder": {**SMALL["decoder"], "copy_from": "source"},
    },
    "label": {
        "inputs": {"source": {"kind": "texts", "sentences": "|||"}},
        "output": {"kind": "label"},
        "encoder": {"kind": "hierarchical", **SMALL["encoder"]},
        "decoder": {"size": 8},
        "search": {},
    },
    "set": {
        "inputs": {"source": {"kind": "set"}},
        "output": {"tokens": "word"},
        "encoder": {"kind": "deep-sets", **SMALL["encoder"]},
    },
    "vector": {
        "inputs": {"source": {"kind": "vector", "column": "numbers"}},
        "output": {"kind": "vector", "column": "numbers"},
        "encoder": {"kind": "dense", "hidden": [4], "size": 2},
        "decoder": {},
        "attention": "none",
        "search": {},
    },
    "language": {"output": {"tokens": "character"}, "encoder": {}, "attention": "none"},
}
ROWS = [("one two", "zwei eins"), ("two three", "drei zwei"), ("three one", "eins drei"), ("two", "zwei")] * 6


def write_rows(folder: Path) -> Path:
    """The table that the models below are made of."""
    path = folder / "rows.tsv"
    lines = [f"{source}\t{output}\t{n} {n % 3}\n" for n, (source, output) in enumerate(ROWS)]
    path.write_text("source\toutput\tnumbers\n" + "".join(lines), encoding="utf-8")
    return path


def make_model(kind: str, table: Path) -> Path:
    """The folder of a model of that kind, beside its table."""
    folder = table.parent / kind
    api.train({"task": kind, **SMALL, **KINDS[kind]}, table, out=folder, listeners=[])
    return folder
