"""Small models of every kind, each trained once for all tests."""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from seq2see import api

SMALL = {
    "encoder": {"size": 12, "embedding": {"size": 8}},
    "decoder": {"size": 16, "embedding": {"size": 8}},
    "attention": {"score": "additive", "size": 8},
    "training": {"learning_rate": 0.01, "dev_rows": 10, "samples": 1, "updates": 4, "epochs": 0, "report_every": 30},
    "search": {"max_length": 12},
}


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put text on standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def pairs(home: Path) -> Path:
    """200 words of four letters and the same spelled in capitals."""
    draw = random.Random(1)
    words = sorted({"".join(draw.choice("abcdef") for _ in range(4)) for _ in range(240)})[:200]
    path = home / "pairs.tsv"
    rows = [f"{word}\t{' '.join(word.upper())}" for word in words]
    path.write_text("\n".join(["word\tspelled", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def verdicts(home: Path) -> Path:
    """Pairs of words and whether they begin alike."""
    draw = random.Random(2)
    rows = []
    for _ in range(60):
        first, second = ("".join(draw.choice("ab") for _ in range(3)) for _ in range(2))
        rows.append(f"{first}\t{second}\t{'alike' if first[0] == second[0] else 'different'}")
    path = home / "verdicts.tsv"
    path.write_text("\n".join(["first\tsecond\tverdict", *rows]) + "\n", encoding="utf-8")
    return path


def recipe(home: Path, name: str, **parts: Any) -> Path:
    """A recipe's file: the small settings with these parts."""
    path = home / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"task": name, **SMALL, **parts}), encoding="utf-8")
    return path


SPELLING = {
    "inputs": {"source": {"column": "word", "tokens": "character"}},
    "output": {"column": "spelled", "tokens": "symbol"},
}


@pytest.fixture(scope="session")
def spelling(home: Path) -> Path:
    """The recipe of the speller."""
    return recipe(home, "spelling", **SPELLING, evaluation={"metrics": ["exact", "cer"]})


@pytest.fixture(scope="session")
def speller(home: Path, spelling: Path, pairs: Path) -> Path:
    """A model of one input with attention that has learned something."""
    api.train(spelling, pairs, out=home / "speller", updates=120, listeners=[])
    return home / "speller"


@pytest.fixture(scope="session")
def other(home: Path, spelling: Path) -> Path:
    """The same with another output vocabulary."""
    table = home / "other.tsv"
    table.write_text("word\tspelled\n" + "".join(f"a{letter}\t{letter} 1\n" for letter in "abcdefgh"), encoding="utf-8")
    api.train(spelling, table, out=home / "other", updates=1, listeners=[])
    return home / "other"


@pytest.fixture(scope="session")
def blind(home: Path, pairs: Path) -> Path:
    """A model without attention."""
    settings = {**SPELLING, "attention": "none"}
    api.train(recipe(home, "blind", **settings), pairs, out=home / "blind", listeners=[])
    return home / "blind"


@pytest.fixture(scope="session")
def judge(home: Path, verdicts: Path) -> Path:
    """A model of two inputs that gives labels."""
    inputs = {"first": {"tokens": "character"}, "second": {"tokens": "character"}}
    path = recipe(
        home,
        "judge",
        inputs=inputs,
        output={"kind": "label", "column": "verdict"},
        decoder={"kind": "label", "size": 16, "start": "first"},
        attention={"score": "additive", "size": 8, "over": "second"},
        search={},
    )
    api.train(path, verdicts, out=home / "judge", listeners=[])
    return home / "judge"


@pytest.fixture(scope="session")
def babbler(home: Path, pairs: Path) -> Path:
    """A language model."""
    settings = {"output": {"column": "word", "tokens": "character"}, "search": {"max_length": 8}}
    kept = {name: SMALL[name] for name in ("decoder", "training")}
    path = home / "babble.yaml"
    path.write_text(yaml.safe_dump({"task": "babble", **kept, **settings}), encoding="utf-8")
    table = home / "words.tsv"
    words = [line.split("\t")[0] for line in pairs.read_text("utf-8").splitlines()]
    table.write_text("\n".join(words) + "\n", encoding="utf-8")
    api.train(path, table, out=home / "babbler", listeners=[])
    return home / "babbler"
