"""The one model: built from a recipe, its parts fit, and whatever the task it can be taught."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.decoders import LabelDecoder, RecurrentDecoder
from seq2see.embeddings import EmbeddingSettings
from seq2see.errors import UserError
from seq2see.model import SOS, EncoderDecoder, Sizes, shifted
from seq2see.recipe import load_recipe

SYMBOLS, OUTPUTS, SMALL = 9, 7, 6
ENCODER = {"size": SMALL // 2, "embedding": {"size": 3}}
DECODER = {"size": SMALL, "embedding": {"size": 4}}


def sequences(rows: list[list[int]]) -> Sequences:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    return Sequences(ids, torch.tensor([[j < len(row) for j in range(longest)] for row in rows]), None)


def model(raw: dict[str, Any], **sizes: Any) -> EncoderDecoder:
    base = {"decoder": DECODER, "encoder": ENCODER} if raw.get("inputs") else {"decoder": DECODER}
    recipe = load_recipe({**base, **raw})
    return EncoderDecoder(recipe, Sizes(dict.fromkeys(recipe.inputs, SYMBOLS), OUTPUTS, **sizes)).eval()


def text(*names: str) -> Batch:
    inputs = {name: sequences([[5, 8, 4], [7, 4], [6]]) for name in names}
    return Batch(inputs, sequences([[4, 5, 3], [6, 3], [3]]), rows=[0, 1, 2])


def label(*names: str) -> Batch:
    inputs = {name: sequences([[5, 8, 4], [7, 4], [6]]) for name in names}
    return Batch(inputs, Labels(torch.tensor([1, 0, 6])), rows=[0, 1, 2])


def loss(made: EncoderDecoder, batch: Batch) -> Tensor:
    step, ready = made.forward_batch(batch)
    target = batch.target
    assert target is not None
    mask = target.mask if isinstance(target, Sequences) else torch.ones_like(target.ids, dtype=torch.bool)
    return made.head.loss(step, ready, target.ids, mask=mask)


TASKS: dict[str, tuple[dict[str, Any], Batch]] = {
    "language model": ({}, text()),
    "pairs": ({"inputs": {"source": {}}}, text("source")),
    "pairs without attention": ({"inputs": {"source": {}}, "attention": "none"}, text("source")),
    "two inputs": (
        {
            "inputs": {"passage": {}, "question": {}},
            "attention": {"over": "passage"},
            "decoder": {**DECODER, "start": "question", "every_step": "question"},
        },
        text("passage", "question"),
    ),
    "one encoder for two inputs": ({"inputs": {"a": {}, "b": {"share": "a"}}}, text("a", "b")),
    "label": ({"inputs": {"source": {}}, "output": {"kind": "label"}, "decoder": {"size": SMALL}}, label("source")),
    "label of two inputs": (
        {
            "inputs": {"a": {}, "b": {"share": "a"}},
            "output": {"kind": "label"},
            "attention": "none",
            "decoder": {"size": SMALL, "start": ["a", "b"], "join": "compare", "readout": 5},
        },
        label("a", "b"),
    ),
    "tied": ({"inputs": {"source": {}}, "decoder": {**DECODER, "tied": True}}, text("source")),
    "names that torch uses": ({"inputs": {"keys": {}, "items": {}}}, text("keys", "items")),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_can_be_taught(task: str) -> None:
    """Untrained, every parameter gets a gradient; a few updates on the same rows bring the loss far down."""
    raw, batch = TASKS[task]
    made = model(raw)
    first = loss(made, batch)
    first.backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name
    optimizer = torch.optim.Adam(made.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        last = loss(made, batch)
        last.backward()
        optimizer.step()
    assert last.item() < (0.2 if task != "language model" else 0.8) * first.item()


@pytest.mark.parametrize("task", [task for task in TASKS if task.startswith(("pairs", "two", "names"))])
def test_steps_have_the_probabilities_that_are_taught(task: str) -> None:
    raw, batch = TASKS[task]
    made = model(raw)
    assert isinstance(batch.target, Sequences)
    taught, ready = made.forward_batch(batch)
    whole = made.log_probs(taught, ready)
    state, token = made.begin(ready), torch.full((3,), SOS)
    for t in range(3):
        step = made.step(ready, state, token)
        torch.testing.assert_close(made.log_probs(step, ready), whole[:, t], atol=1e-5, rtol=0)
        state, token = step.state, batch.target.ids[:, t]


def test_what_is_read_is_the_target_one_step_late() -> None:
    assert shifted(torch.tensor([[4, 5, 3], [6, 3, 0]])).tolist() == [[2, 4, 5], [2, 6, 3]]


def test_parts_follow_the_recipe() -> None:
    made = model(TASKS["one encoder for two inputs"][0])
    assert made.encoder("a") is made.encoder("b")
    assert list(made.encoders) == ["a"]
    assert isinstance(made.decoder, RecurrentDecoder)
    assert isinstance(model(TASKS["label"][0]).decoder, LabelDecoder)
    own = model({"inputs": {"a": {"encoder": {"size": 5, "bidirectional": False}}, "b": {}}})
    assert (own.encoder("a").size, own.encoder("b").size) == (5, SMALL)


def test_parameters_bear_the_names_of_the_equations() -> None:
    names = dict(model(TASKS["pairs"][0]).named_parameters())
    assert {
        "encoders.source.embedding.E",
        "encoders.source.layers.0.0.W.x",
        "encoders.source.layers.0.1.U",
        "decoder.embedding.E",
        "decoder.looking.over.source.score.W_q.weight",
        "decoder.layers.0.W.y",
        "decoder.layers.0.W.c",
        "decoder.start.s_0",
        "head.V",
        "head.c",
    } <= names.keys()


def test_tied_weights_are_one_parameter() -> None:
    made = model(TASKS["tied"][0])
    assert isinstance(made.decoder, RecurrentDecoder)
    assert made.head.V is made.decoder.embedding.weight
    assert sum(parameter is made.head.V for parameter in made.parameters()) == 1


def test_pretrained_vectors_reach_their_embeddings() -> None:
    vectors = {"source": torch.randn(SYMBOLS, 5), "output": torch.randn(OUTPUTS, 2)}
    kept = {"kind": "pretrained", "path": "x.vec", "tuned": False}
    made = model(
        {
            "inputs": {"source": {}},
            "encoder": {**ENCODER, "embedding": kept},
            "decoder": {**DECODER, "embedding": kept},
        },
        vectors=vectors,
    )
    state = made.state_dict()
    assert state["encoders.source.embedding.E"].equal(vectors["source"])
    assert state["decoder.embedding.E"].equal(vectors["output"])
    loss(made, text("source")).backward()
    frozen = {name for name, parameter in made.named_parameters() if parameter.grad is None}
    assert frozen == {"encoders.source.embedding.E", "decoder.embedding.E"}


def test_an_input_does_not_depend_on_its_batch() -> None:
    made = model(TASKS["pairs"][0])
    batch = text("source")
    together, _ = made.forward_batch(batch)
    for row, ids in enumerate([[5, 8, 4], [7, 4], [6]]):
        ready = made.ready({"source": sequences([ids])}, 1)
        assert isinstance(batch.target, Sequences)
        alone = made.teach(ready, batch.target.ids[row : row + 1])
        torch.testing.assert_close(alone.features[0], together.features[row], atol=1e-5, rtol=0)


def test_a_one_hot_embedding_cannot_be_tied() -> None:
    recipe = load_recipe({"inputs": {"source": {}}})
    embedding = EmbeddingSettings(kind="one-hot")
    decoder = recipe.decoder.model_copy(update={"tied": True, "embedding": embedding})
    with pytest.raises(UserError, match=r"decoder\.tied needs an embedding with weights"):
        EncoderDecoder(recipe.model_copy(update={"decoder": decoder}), Sizes({"source": SYMBOLS}, OUTPUTS))


def test_what_cannot_be_taught_is_refused() -> None:
    with pytest.raises(ValueError, match="without targets"):
        model({}).forward_batch(Batch({}, None, rows=[0]))
    made = model(TASKS["label"][0])
    ready = made.ready(label("source").inputs, 3)
    with pytest.raises(TypeError, match="decoder of one step"):
        made.teach(ready, torch.zeros(3, 2, dtype=torch.long))


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [({}, 0.25), ({"tied": True}, 1 / 20), ({"kind": "transformer", "heads": 4}, 1 / 20)],
    ids=["read by a cell", "shared with the output layer", "multiplied by sqrt(d)"],
)
def test_embeddings_begin_by_who_reads_them(decoder: dict[str, Any], expected: float) -> None:
    """A recurrent encoder's have a deviation of 0.25, and so have a recurrent decoder's unless they are output weights,
    whose rows have length one as a Transformer's."""
    small = {"size": 400, "embedding": {"size": 400}}
    recipe = load_recipe({"inputs": {"source": {}}, "encoder": small, "decoder": {**small, **decoder}})
    made = EncoderDecoder(recipe, Sizes({"source": 1000}, 1000))
    assert float(made.encoder("source").embedding.E.detach().std()) == pytest.approx(0.25, rel=0.05)  # type: ignore[union-attr]
    assert float(made.decoder.embedding.E.detach().std()) == pytest.approx(expected, rel=0.05)  # type: ignore[union-attr]
