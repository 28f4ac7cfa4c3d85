"""Small untrained models of several kinds, and the command line called in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seq2see import api
from seq2see.cli import main

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


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "rows.tsv"
    lines = [f"{source}\t{output}\t{n} {n % 3}\n" for n, (source, output) in enumerate(ROWS)]
    path.write_text("source\toutput\tnumbers\n" + "".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def models(table: Path) -> dict[str, Path]:
    """The folder of a model of each kind."""
    folders = {}
    for kind, settings in KINDS.items():
        recipe = {"task": kind, **SMALL, **settings}
        folders[kind] = table.parent / kind
        api.train(recipe, table, out=folders[kind], listeners=[])
    return folders


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Call the command line in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return run
