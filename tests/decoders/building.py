"""Small decoders and memories with random weights, and the steps of a target taken one by one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seq2see.decoders import Conditions, Ready, RecurrentDecoder, State, Step
from seq2see.decoders.base import DecoderSettings
from seq2see.embeddings import build_embedding
from seq2see.memory import Memory, Places, View
from tests.settings import attention_of

SYMBOLS, SIZE, ROWS, PLACES, STEPS = 7, 6, 3, 4, 5
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)


def decoder(
    settings: dict[str, Any], attention: dict[str, Any], *, inputs: tuple[str, ...] = ("source",)
) -> RecurrentDecoder:
    """A decoder of those settings over inputs whose places and summaries have the size of the state."""
    settings = {"size": SIZE, "embedding": {"size": 3}, **settings}
    asked = attention_of(**{"score": "additive", "size": 5, **attention})
    given = DecoderSettings.model_validate(settings)
    sizes = dict.fromkeys(inputs, SIZE)
    conditions = Conditions(
        build_embedding(given.embedding, SYMBOLS),
        looks={} if asked.score == "none" else dict.fromkeys(inputs, View(SIZE)),
        start=sizes if given.start else {},
        every=sizes if given.every_step else {},
    )
    made = RecurrentDecoder(given, asked, conditions)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made.eval()


def memory(*, inputs: tuple[str, ...] = ("source",)) -> Memory:
    return Memory(
        places={name: Places(torch.randn(ROWS, PLACES, SIZE), MASK) for name in inputs},
        summaries={name: torch.randn(ROWS, SIZE) for name in inputs},
        rows=ROWS,
    )


def stepped(made: RecurrentDecoder, ready: Ready, tokens: Tensor, *, width: int = 1) -> Step:
    """The target read symbol by symbol, what the steps gave stacked as `teach` stacks it."""
    state, steps = made.begin(ready, width=width), []
    for token in tokens.unbind(1):
        step = made.step(ready, state, token)
        state = step.state
        steps.append(step)
    return Step.stacked(steps)


def close(ours: Step, theirs: Step) -> None:
    torch.testing.assert_close(ours.features, theirs.features, atol=1e-5, rtol=0)
    assert ours.looks.keys() == theirs.looks.keys()
    for name, look in ours.looks.items():
        torch.testing.assert_close(look.dense(), theirs.looks[name].dense(), atol=1e-5, rtol=0)
    same_state(ours.state, theirs.state)


def same_state(ours: State, theirs: State) -> None:
    assert (ours.width, ours.position) == (theirs.width, theirs.position)
    torch.testing.assert_close(ours.cells, theirs.cells, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.past, theirs.past, atol=1e-5, rtol=0)
    assert (ours.context is None) == (theirs.context is None)
    if ours.context is not None:
        torch.testing.assert_close(ours.context, theirs.context, atol=1e-5, rtol=0)
