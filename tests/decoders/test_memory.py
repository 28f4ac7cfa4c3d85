"""A Transformer that sees so many symbols back: the same function however a text is cut, without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seq2see.decoders import Ready, State, TransformerDecoder
from seq2see.memory import Memory
from tests.attention.test_rotary import by_hand
from tests.decoders.building import ROWS, SIZE, SYMBOLS
from tests.decoders.test_transformer import close, decoder, stepped

Array = np.ndarray
HEADS, LAYERS, LENGTH = 3, 2, 14
FAR = {"positions": "rotary", "heads": HEADS, "layers": LAYERS}


def alone(**settings: Any) -> tuple[TransformerDecoder, Ready]:
    made = decoder({**FAR, **settings}, {"score": "none"})
    return made, made.prepare(Memory(rows=ROWS))


def text(length: int = LENGTH) -> Tensor:
    return torch.randint(0, SYMBOLS, (ROWS, length), generator=torch.Generator().manual_seed(5))


def normalised(layer: torch.nn.LayerNorm, x: Array) -> Array:
    risen = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + layer.eps)
    return np.asarray(risen * numbers(layer.weight) + numbers(layer.bias))


def linear(layer: torch.nn.Linear, x: Array) -> Array:
    return np.asarray(x @ numbers(layer.weight).T + (0 if layer.bias is None else numbers(layer.bias)))


def numbers(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().double().numpy())


def read_by_hand(made: TransformerDecoder, ids: list[int], memory: int) -> Array:
    """The whole text at once, without a cache: each symbol weighs itself and the `memory` before it."""
    assert made.entrance.W_e is not None
    embedded = made.entrance.embedding(torch.tensor(ids))
    x = SIZE**0.5 * linear(made.entrance.W_e, numbers(embedded))
    part = SIZE // HEADS
    for layer in made.blocks:
        assert layer.inward is not None
        assert layer.norm_1 is not None
        normal = normalised(layer.norm_1, x)
        q, k, v = (linear(one, normal) for one in (layer.inward.W_q, layer.inward.W_k, layer.inward.W_v))
        found = np.zeros_like(x)
        for head in range(HEADS):
            own = slice(head * part, (head + 1) * part)
            turned_q, turned_k = by_hand(q[:, own], 0), by_hand(k[:, own], 0)
            for t in range(len(ids)):
                seen = slice(max(0, t - memory), t + 1)
                powers = np.exp(turned_k[seen] @ turned_q[t] / part**0.5)
                found[t, own] = powers / powers.sum() @ v[seen, own]
        x = x + linear(layer.inward.W_o, found)
        thought = np.maximum(linear(layer.feed.W_1, normalised(layer.norm_3, x)), 0)
        x = x + linear(layer.feed.W_2, thought)
    return normalised(made.norm, x)


@pytest.mark.parametrize("memory", [1, 3, 50])
def test_it_is_what_the_equations_say(memory: int) -> None:
    made, ready = alone(memory=memory)
    found = made.teach(ready, made.begin(ready), text()).features
    for row, ids in enumerate(text().tolist()):
        assert numbers(found[row]) == pytest.approx(read_by_hand(made, ids, memory), abs=1e-4)


@pytest.mark.parametrize("memory", [1, 4, None])
@pytest.mark.parametrize("positions", ["rotary", "none", "sinusoidal", "learned"])
def test_teaching_equals_stepping(memory: int | None, positions: str) -> None:
    made, ready = alone(memory=memory, positions=positions)
    with torch.no_grad():
        close(made.teach(ready, made.begin(ready), text()), stepped(made, ready, text()))


@pytest.mark.parametrize("pieces", [[1, 2, 3, 8], [7, 7], [13, 1], [5, 1, 1, 5, 2]])
@pytest.mark.parametrize("memory", [1, 4, 9])
@torch.no_grad()
def test_where_a_text_is_cut_changes_nothing(memory: int, pieces: list[int]) -> None:
    """Also where the state has gone through a checkpoint, which knows no position."""
    made, ready = alone(memory=memory)
    whole = made.teach(ready, made.begin(ready), text())
    state, found = made.begin(ready), []
    for piece in text().split(pieces, 1):
        step = made.teach(ready, State.from_tensors(state.tensors()), piece)
        state = step.state.detach()
        found.append(step.features)
        assert all(part.shape[2] <= memory for cache in state.caches for part in cache)
    torch.testing.assert_close(torch.cat(found, 1), whole.features, atol=1e-5, rtol=0)
    torch.testing.assert_close(state.caches, whole.state.caches, atol=1e-5, rtol=0)


@torch.no_grad()
def test_what_lies_further_back_than_all_layers_reach_is_not_seen() -> None:
    memory, last = 3, LENGTH - 1
    made, ready = alone(memory=memory)
    for changed in range(LENGTH):
        other = text()
        other[:, changed] = (other[:, changed] + 1) % SYMBOLS
        ours, theirs = (made.teach(ready, made.begin(ready), one).features[:, last] for one in (text(), other))
        assert torch.allclose(ours, theirs, atol=1e-6) == (changed < last - LAYERS * memory)


@torch.no_grad()
def test_a_text_that_has_gone_on_for_long_is_read_as_at_its_beginning() -> None:
    """Nothing is counted from the beginning: what was read long ago is forgotten altogether."""
    made, ready = alone(memory=3)
    again = text(2 * LAYERS * 3 + 2)
    state = made.begin(ready)
    for seed in range(40):
        piece = torch.randint(0, SYMBOLS, (ROWS, 50), generator=torch.Generator().manual_seed(seed))
        state = made.teach(ready, state, piece).state
    late = made.teach(ready, state, again).features[:, -1]
    torch.testing.assert_close(late, made.teach(ready, made.begin(ready), again).features[:, -1], atol=1e-5, rtol=0)


@torch.no_grad()
def test_steps_tell_where_they_looked_at_their_own_places() -> None:
    made, ready = alone(memory=2)
    ready.maps = True
    state = made.begin(ready)
    for t, token in enumerate(text().unbind(1)):
        step = made.step(ready, state, token)
        state = step.state
        for weights in step.self_weights:
            assert weights.shape == (ROWS, HEADS, t + 1)
            torch.testing.assert_close(weights.sum(-1), torch.ones(ROWS, HEADS))
            assert not weights[..., : max(t - 2, 0)].any()
            assert (weights[..., max(t - 2, 0) :] > 0).all()


def test_the_gradient_goes_back_as_far_as_the_piece() -> None:
    made, ready = alone(memory=6)
    first = made.teach(ready, made.begin(ready), text()[:, :7])
    assert first.state.caches[0][0].requires_grad
    second = made.teach(ready, first.state.detach(), text()[:, 7:])
    second.features.square().sum().backward()
    assert all(one.grad is not None and one.grad.isfinite().all() for one in made.parameters())
