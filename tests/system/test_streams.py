"""A Transformer that reads one long text in pieces: what came before a piece is seen from it, however it is cut."""

from __future__ import annotations

import math
from pydoc_data.topics import topics

import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.pipeline.dataset import Stream
from tests.system.small import RecordingListener

PIECE = 12
SMALL = (
    "decoder.kind=transformer",
    "decoder.size=48",
    "decoder.layers=2",
    "decoder.feedforward=96",
    "decoder.dropout=0",
    "decoder.embedding.size=48",
    "decoder.memory=24",
    "training.learning_rate=0.004",
    "training.lanes=16",
    f"training.bptt={PIECE}",
    "training.threads=1",
    "training.precision=float32",
)


def lines(*names: str) -> list[str]:
    """What Python's own documentation says of these topics."""
    return [line for name in names for line in topics[name].splitlines()]


HELD_OUT = lines("with")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("stream")
    text = "\n".join(lines("assignment", "class", "function", "for", "if", "import", "return", "try", "yield"))
    (folder / "train.txt").write_text(text + "\n", encoding="utf-8")
    seq2see.train(
        "language-model",
        data=folder / "train.txt",
        out=folder / "model",
        updates=300,
        overrides=SMALL,
        listeners=[RecordingListener()],
    )
    return seq2see.load(folder / "model")


@torch.inference_mode()
def perplexity(model: Model, *, carried: bool) -> float:
    """Of the held-out text, read in pieces; carried: each goes on where the one before ended."""
    network, stream = model.bundle.network, Stream.build(model.bundle.fields.text_output, HELD_OUT)
    ready, total, count = network.ready({}, 1), 0.0, 0
    state = network.begin(ready)
    for chunk in stream.chunks(bptt=PIECE, lanes=1):
        step = network.read_on(ready, chunk.inputs, state if carried else network.begin(ready))
        state = step.state
        every = network.log_probs(step, ready).gather(-1, chunk.targets[..., None])
        total, count = total + float(every.sum()), count + chunk.targets.numel()
    return math.exp(-total / count)


def test_what_came_before_a_piece_helps(model: Model) -> None:
    report = model.evaluate([{"output": line} for line in HELD_OUT])
    with_it, without = perplexity(model, carried=True), perplexity(model, carried=False)
    assert report.metrics["perplexity"] == pytest.approx(with_it, rel=1e-3)
    assert with_it < 0.95 * without
    assert with_it < report.baseline["perplexity"] / 2


def test_a_text_has_one_probability_however_it_is_read(model: Model) -> None:
    """Scored at once, and symbol by symbol as a search reads it."""
    text = "the name is bound in the local namespace of the class"
    whole = model.score([{"output": text}])
    network, field = model.bundle.network, model.bundle.fields.text_output
    ids = torch.tensor(field.vocabulary.encode(field.stream_symbols(text)))
    with torch.inference_mode():
        ready = network.ready({}, 1)
        state, total, before = network.begin(ready), 0.0, torch.tensor([2])
        for symbol in ids:
            step = network.step(ready, state, before)
            state, before = step.state, symbol[None]
            total += float(network.log_probs(step, ready)[0, symbol])
    assert total == pytest.approx(whole.log_probability, abs=1e-2)
    assert len(ids) > 2 * 24


def test_it_writes_and_tells_how_it_looked_back(model: Model) -> None:
    sampled = model.predict(None, sample=True, prefix="the class", max_length=60, seed=5)
    assert sampled.text is not None
    assert sampled.text.startswith("the class")
    assert len(sampled.tokens) == 60
    best = model.predict(None, beam=2, prefix="the class", max_length=40)
    assert len(best.tokens) == 40
    prediction = model.look(None, target="the function is called when the class is defined")
    weights = prediction.looks.maps["output.self-1"]
    heads, steps, places = weights.shape
    assert (heads, steps) == (4, places)
    assert steps > 30
    assert weights.sum(-1) == pytest.approx(torch.ones(heads, steps).numpy(), abs=1e-4)
    assert not weights[:, 30, :6].any()
    assert weights[:, 30, 6:31].all()
