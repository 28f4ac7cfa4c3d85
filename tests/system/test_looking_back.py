"""Names and what belongs to them, then one of the names again: what belongs to it is found by looking back."""

from __future__ import annotations

import random
from pathlib import Path

from tests.system.small import Row, Trained, learn, part

RECIPE = {
    "inputs": {"source": {"kind": "text", "tokens": "word"}},
    "output": {"kind": "label"},
    "attention": "none",
    "encoder": {"size": 32, "bidirectional": False, "embedding": {"size": 16}},
    "decoder": {"size": 16},
    "training": {"learning_rate": 0.008, "threads": 1, "dev_rows": 40, "report_every": 1000, "batch_tokens": 1200},
}


def pairs(*, count: int = 3000) -> list[Row]:
    draw = random.Random(1)
    rows: list[Row] = []
    for _ in range(count):
        names, things = draw.sample("abcdef", 4), draw.choices("uvwxyz", k=4)
        asked = draw.randrange(4)
        told = [f"{name} {thing}" for name, thing in zip(names, things, strict=True)]
        rows.append({"source": " ".join([*told, names[asked]]), "output": things[asked]})
    return rows


def trained(folder: Path, score: str) -> Trained:
    rows, held_out = part(pairs())
    folder.mkdir()
    return learn(RECIPE, rows, held_out, folder, updates=300, overrides=[f"encoder.self_attention={score}"])


def test_a_recurrent_network_that_looks_back_finds_what_it_was_asked_for(tmp_path: Path) -> None:
    made, without = trained(tmp_path / "with", "general"), trained(tmp_path / "without", "none")
    assert made.model.evaluate(made.rows).metrics["accuracy"] >= 0.95
    assert without.model.evaluate(made.rows).metrics["accuracy"] <= 0.75

    words = ["a", "u", "b", "v", "c", "w", "d", "x", "b"]
    said = made.model.look(" ".join(words))
    assert said.label == "v"
    weights = said.looks.maps["source.self-1"]
    assert said.looks.rows["source.self-1"] == said.looks.inputs["source.self-1"] == words
    assert weights.shape == (9, 9)
    assert weights[-1].argmax() == 3  # the last symbol, b, looks at the v that followed the first b
    assert without.model.look(" ".join(words)).looks.maps == {}
