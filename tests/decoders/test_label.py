"""The decoder of one step: summaries joined, one look, features for the labels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from seq2see.attention import scores
from seq2see.decoders import Conditions, LabelDecoder
from seq2see.decoders.base import DecoderSettings
from seq2see.errors import UserError
from seq2see.memory import View
from tests.decoders.building import MASK, ROWS, SIZE, memory
from tests.settings import attention_of

INPUTS = ("premise", "hypothesis")


def decoder(
    *, score: str = "none", looks: tuple[str, ...] = (), start: tuple[str, ...] = INPUTS, **more: Any
) -> LabelDecoder:
    settings = DecoderSettings.model_validate({"kind": "label", "size": SIZE, **more})
    made = LabelDecoder(
        settings,
        attention_of(score=score, size=5),
        Conditions(looks=dict.fromkeys(looks, View(SIZE)), start=dict.fromkeys(start, SIZE)),
    )
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made.eval()


@pytest.mark.parametrize("join", ["concat", "compare"])
def test_summaries_of_two_inputs_meet_in_the_first_state(join: str) -> None:
    made, given = decoder(join=join), memory(inputs=INPUTS)
    u, v = (given.summaries[name] for name in INPUTS)
    joined = torch.cat([u, v] if join == "concat" else [u, v, (u - v).abs(), u * v], -1)
    expected = torch.tanh(joined @ made.start.W_start.weight.t() + made.start.W_start.bias)
    ready = made.prepare(given)
    torch.testing.assert_close(made.step(ready, made.begin(ready)).features, expected)
    assert made.features_size == SIZE


def test_the_state_asks_and_the_label_sees_state_and_context() -> None:
    made, given = decoder(score="additive", looks=("premise",), start=("hypothesis",)), memory(inputs=INPUTS)
    ready = made.prepare(given)
    state = made.begin(ready)
    step = made.step(ready, state)
    asked = state.cells[0][0]
    look = made.looking.over["premise"](asked[:, None], ready.looks["premise"])
    torch.testing.assert_close(step.features, torch.cat([asked, look.context[:, 0]], -1))
    torch.testing.assert_close(step.looks["premise"].weights, look.weights[:, 0])
    assert list(step.looks) == ["premise"]
    assert made.features_size == 2 * SIZE
    assert (step.looks["premise"].weights[~MASK] == 0).all()


@pytest.mark.parametrize("score", scores.settings)
def test_every_score_serves_with_a_learned_question(score: str) -> None:
    made, given = decoder(score=score, looks=INPUTS, start=()), memory(inputs=INPUTS)
    ready = made.prepare(given)
    step = made.step(ready, made.begin(ready))
    assert step.features.shape == (ROWS, 3 * SIZE)
    step.features.pow(2).sum().backward()
    assert made.start.s_0.grad is not None
    assert torch.isfinite(made.start.s_0.grad).all()
    assert made.start.s_0.grad.any()


def test_weights_can_be_forced() -> None:
    made, given = decoder(score="dot", looks=("premise",)), memory(inputs=INPUTS)
    ready = made.prepare(given)
    forced = torch.tensor([[0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    step = made.step(ready, made.begin(ready), forced={"premise": forced})
    assert step.looks["premise"].weights.equal(forced)
    torch.testing.assert_close(step.features[0, SIZE:], given.places["premise"].states[0, 3])


def test_compare_needs_two_summaries_of_one_size() -> None:
    with pytest.raises(UserError, match=r"compare needs two inputs of one summary size, got sizes \[6\]"):
        decoder(join="compare", start=("premise",))
