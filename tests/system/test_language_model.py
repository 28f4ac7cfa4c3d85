"""A language with a grammar: what comes next depends on what came before."""

from __future__ import annotations

import random
from pathlib import Path

import seq2see
from tests.system.small import RecordingListener, Trained

NEXT = {"the": ["cat", "dog"], "cat": ["sat", "ran"], "dog": ["ran", "sat"], "sat": ["on", "by"], "ran": ["by", "on"],
        "on": ["the"], "by": ["the"]}  # fmt: skip


def sentences(count: int, *, seed: int) -> list[str]:
    """Lines of a small Markov language, in which the next word is one of at most two."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        words = ["the"]
        while len(words) < 8:
            words.append(draw.choice(NEXT[words[-1]]))
        lines.append(" ".join(words))
    return lines


def test_language_model_learns_the_order_not_only_the_letters(tmp_path: Path) -> None:
    text, held_out = tmp_path / "train.txt", sentences(60, seed=12)
    text.write_text("\n".join(sentences(400, seed=11)) + "\n", encoding="utf-8")
    sizes = ["decoder.size=64", "decoder.dropout=0", "decoder.embedding.size=16", "training.learning_rate=0.01"]
    how = ["training.lanes=8", "training.bptt=32", "training.threads=1", "training.precision=float32"]
    seq2see.train(
        "language-model",
        data=text,
        out=tmp_path / "model",
        updates=110,
        overrides=[*sizes, *how],
        listeners=[RecordingListener()],
    )
    model = seq2see.load(tmp_path / "model")
    rows = [{"output": line} for line in held_out]
    letters = random.Random(13)
    shuffled = [{"output": "".join(letters.sample(line, len(line)))} for line in held_out]

    report = model.evaluate(rows)
    assert report.metrics["perplexity"] <= 1.5
    assert report.metrics["perplexity"] < report.baseline["perplexity"] / 4
    assert Trained(model, rows, RecordingListener()).untrained.evaluate(rows).metrics["perplexity"] >= 10
    assert model.evaluate(shuffled).metrics["perplexity"] > report.baseline["perplexity"]
    assert abs(model.score(rows).perplexity - report.metrics["perplexity"]) < 1e-6

    sampled = model.predict(None, sample=True, prefix="the cat", max_length=60, seed=5)
    assert sampled.text is not None
    assert sampled.text.startswith("the cat")
    known = {*NEXT}
    assert sum(word in known for word in sampled.text.split()[:-1]) >= 5
