"""Plug-ins bring a cell, a normaliser, a metric, a kind of input and a kind of output, each in one short file."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.commands import Run

Call = Callable[..., Run]
FILES = sorted((Path(__file__).parents[2] / "docs" / "plugins").glob("*.py"))
MOST_LINES = 60
PLUGINS = [word for path in FILES for word in ("--plugin", path.stem)]

RECIPE = {
    "inputs": {"points": {"kind": "points"}},
    "output": {"kind": "angle", "column": "angle"},
    "encoder": {"kind": "pyramidal", "size": 24, "layers": 1, "halvings": 0, "cell": "mgu", "forget": 1.0},
    "attention": {"score": "additive", "size": 16, "normaliser": "top-softmax", "largest": 2},
    "decoder": {"size": 24},
    "evaluation": {"metrics": ["near", "mse"]},
    "training": {"updates": 300, "epochs": 0, "learning_rate": 0.01, "report_every": 300},
}
"""Of several points one lies far from the origin: its direction is the answer."""


def table(path: Path, *, rows: int, seed: int) -> Path:
    draw, lines = random.Random(seed), ["points\tangle"]
    for _ in range(rows):
        angle, count = draw.uniform(0, 360), draw.randint(3, 8)
        points = [(draw.gauss(0, 0.3), draw.gauss(0, 0.3)) for _ in range(count)]
        points[draw.randrange(count)] = 3 * math.sin(math.radians(angle)), 3 * math.cos(math.radians(angle))
        lines.append(" ".join(f"{x:.3f},{y:.3f}" for x, y in points) + f"\t{angle:.1f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_part_is_one_short_file(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < MOST_LINES


def test_all_of_them_together_from_training_to_looking(call: Call, here: Path) -> None:
    for path in FILES:
        shutil.copy(path, here)
    (here / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    data, test = table(here / "train.tsv", rows=400, seed=1), table(here / "test.tsv", rows=100, seed=2)
    trained = call("train", "recipe.yaml", "--data", data, "--out", "run", *PLUGINS)
    assert trained.code == 0, trained.err

    figures = json.loads(call("evaluate", "run", "--data", test, "--json", *PLUGINS).out)
    assert figures["metrics"]["near"] > 0.8 > 2 * figures["baseline"]["near"]

    line = call("predict", "run", "0.1,-0.2 2.9,0.1 0.3,0.2", "--json", "--looks", "-", *PLUGINS).out
    prediction = json.loads(line)
    assert 60 < prediction["vector"][0] < 120  # the second point lies to the right
    assert sum(weight > 0 for weight in prediction["looks"]["weights"][0]) == 2  # attention.largest
    shown = call("show", "run", *PLUGINS).out
    assert "f = logistic(W_f x + U_f s)" in shown
    assert "over the largest energies" in shown
    assert call("look", "run", "0.1,-0.2 2.9,0.1", "--out", "look.png", *PLUGINS).code == 0

    wrong = call("predict", "run", "0.1,left", *PLUGINS)
    assert (wrong.code, "'0.1,left' is not made of points" in wrong.err) == (2, True)
    refused = call("show", "recipe.yaml", "--set", "attention.larges=2", *PLUGINS)
    assert (refused.code, "did you mean 'largest'?" in refused.err) == (2, True)


def test_without_the_plugin_the_kind_is_named(here: Path) -> None:
    """In a process of its own, which never saw the plug-in."""
    (here / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    run = subprocess.run(
        [sys.executable, "-m", "seq2see", "show", "recipe.yaml"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "inputs.points.kind: 'points' is not allowed" in run.stderr
    assert "--plugin" in run.stderr


MISTAKES = {
    "wrong base class": ("cells", "class Bad: ...", "Bad is no subclass of seq2see.cells.Cell"),
    "no gates": ("cells", "class Bad(Cell):\n    def forward(self, projected, state, *, product): ...", "gates"),
    "no product": (
        "cells",
        "class Bad(Cell):\n    gates = 1\n    def forward(self, projected, state): ...",
        "Bad.forward takes (projected, state, *, product)",
    ),
    "metric without counts": ("METRICS", "class Bad(Ratio): ...", "Bad does not write counts"),
    "choice without generator": (
        "choices",
        "class Bad(Choice):\n    def forward(self, weights): ...",
        "Bad.forward takes (weights, *, generator)",
    ),
    "input kind without methods": ("inputs", "class Bad(Modality): ...", "Bad does not write batch, ids, pad, widths"),
    "no name": ("normalisers", None, "is registered under a name"),
}
IMPORTS = """from seq2see.attention import Choice, Normaliser, choices, normalisers
from seq2see.cells import Cell, cells
from seq2see.evaluation import METRICS
from seq2see.evaluation.metrics import Ratio
from seq2see.modalities import Modality, inputs
"""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_when_the_plugin_is_imported(mistake: str, call: Call, here: Path) -> None:
    registry, code, fact = MISTAKES[mistake]
    body = f"@{registry}.register\nclass Bad: ..." if code is None else f"@{registry}.register('bad')\n{code}"
    module = f"bad_{abs(hash(mistake))}"
    (here / f"{module}.py").write_text(f"{IMPORTS}\n{body}\n")
    run = call("show", "translation", "--plugin", module)
    assert run.code == 2
    assert fact in run.err


def test_what_a_part_gives_wrongly_is_laid_at_the_door_of_the_plugin(call: Call, here: Path, pairs: Path) -> None:
    (here / "narrow.py").write_text(
        f"{IMPORTS}\n@normalisers.register('narrow')\nclass Narrow(Normaliser):\n"
        "    def forward(self, energies):\n        return energies.softmax(-1)[..., :1]\n"
    )
    options = ["--set", "attention.normaliser=narrow", "--updates", "2", "--out", "run", "--plugin", "narrow"]
    run = call("train", "transliteration", "--data", pairs, "--columns", "word,spelled", *options)
    assert run.code == 2
    assert "normaliser Narrow" in run.err
