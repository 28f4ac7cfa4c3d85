"""Without a recurrence: a small language translated, with attention and without, and a language model of rows."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from tests.system.small import Row, Trained, learn, split

SMALL = (
    *(f"{part}.{key}" for part in ("encoder", "decoder") for key in ("size=48", "layers=2", "feedforward=96")),
    *(f"{part}.{key}" for part in ("encoder", "decoder") for key in ("dropout=0", "embedding.size=48")),
    "inputs.source.tokens=word",
    "output.tokens=word",
    "inputs.source.vocabulary=0",
    "output.vocabulary=0",
    "training.learning_rate=0.004",
    "training.batch_tokens=800",
    "training.average=1",
    "training.threads=1",
    "training.precision=float32",
    "training.dev_rows=40",
    "training.report_every=150",
    "search.max_length=12",
)
WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}


def sentences(seed: int, *, count: int = 900) -> list[Row]:
    """Words of one language; in the other they come in the opposite order."""
    draw = random.Random(seed)
    rows: list[Row] = []
    for _ in range(count):
        words = draw.choices(list(WORDS), k=draw.randint(3, 4))
        rows.append({"en": " ".join(words), "de": " ".join(WORDS[word] for word in reversed(words))})
    return rows


def translator(folder: Path, *overrides: str, updates: int = 260) -> Trained:
    rows, held_out = split(sentences(4))
    return learn("translation-transformer", rows, held_out, folder, updates=updates, overrides=[*SMALL, *overrides])


def test_a_transformer_translates_and_looks_where_it_should(tmp_path: Path) -> None:
    trained = translator(tmp_path)
    assert trained.model.evaluate(trained.rows).metrics["bleu"] >= 80
    assert trained.untrained.evaluate(trained.rows).metrics["bleu"] <= 10
    assert trained.model.evaluate(trained.mismatched()).metrics["bleu"] <= 40
    prediction = trained.model.predict("two five one four", beam=3)
    assert prediction.text == "vier eins fünf zwei"
    assert prediction.looks.weights.shape == (5, 4)
    layers = [prediction.looks.maps[name] for name in ("source", "source.layer-1") if name in prediction.looks.maps]
    spread = [weights if weights.ndim == 2 else weights.mean(0) for weights in layers]
    right = [np.mean(weights[:4].argmax(1) == [3, 2, 1, 0]) for weights in spread]
    assert max(right) >= 0.75


def test_without_attention_the_summary_joins_the_first_symbol(tmp_path: Path) -> None:
    """What is written depends on the input, though the decoder has one vector of it alone."""
    rows: list[Row] = [{"en": f"{a} {b}", "de": f"{WORDS[b]} {WORDS[a]}"} for a in WORDS for b in WORDS]
    trained = learn("translation-transformer", rows, rows, tmp_path, updates=80, overrides=[*SMALL, "attention=none"])
    assert "attention is off: the decoder starts from the summary of source" in trained.listener.notes
    assert trained.model.evaluate(trained.rows).metrics["chrf"] >= 80
    assert trained.model.evaluate(trained.mismatched()).metrics["chrf"] <= 60
    assert trained.model.predict("one two").looks.maps == {}
