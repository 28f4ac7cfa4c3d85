"""Names and what belongs to them, then one of the names again: what belongs to it is found by looking back."""

from __future__ import annotations

import random
from pathlib import Path

from tests.system.small import Row, Trained, learn, split

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
        chosen = draw.randrange(4)
        pairs_text = [f"{name} {thing}" for name, thing in zip(names, things, strict=True)]
        rows.append({"source": " ".join([*pairs_text, names[chosen]]), "output": things[chosen]})
    return rows


def trained(folder: Path, score: str) -> Trained:
    rows, held_out = split(pairs())
    folder.mkdir()
    return learn(RECIPE, rows, held_out, folder, updates=220, overrides=[f"encoder.self_attention={score}"])


def test_a_recurrent_network_that_looks_back_finds_what_it_was_asked_for(tmp_path: Path) -> None:
    with_attention, without = trained(tmp_path / "with", "general"), trained(tmp_path / "without", "none")
    assert with_attention.model.evaluate(with_attention.rows).metrics["accuracy"] >= 0.95
    assert without.model.evaluate(with_attention.rows).metrics["accuracy"] <= 0.75

    words = ["a", "u", "b", "v", "c", "w", "d", "x", "b"]
    prediction = with_attention.model.look(" ".join(words))
    assert prediction.label == "v"
    weights = prediction.looks.maps["source.self-1"]
    assert prediction.looks.rows["source.self-1"] == prediction.looks.inputs["source.self-1"] == words
    assert weights.shape == (9, 9)
    assert weights[-1].argmax() == 3  # the last symbol, b, looks at the v that followed the first b
    assert without.model.look(" ".join(words)).looks.maps == {}
