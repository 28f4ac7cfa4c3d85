"""The specification's equations written down once more in NumPy, row by row, and held against the whole model.

Nothing here is shared with the model but its weights, which are read by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from seq2see.data.batches import Sequences
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe

Array = NDArray[np.float64]
INPUT_SYMBOLS, OUTPUT_SYMBOLS, SIZE = 9, 8, 4
SOURCES = [[5, 8, 4], [7], []]
TARGETS = [2, 6, 4, 4]


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max())
    return powers / powers.sum()


@dataclass
class Weights:
    """A model's parameters by name, as arrays."""

    named: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.named[name]

    def gru(self, cell: str, x: dict[str, Array], s: Array) -> Array:
        """r, z = logistic(W x + U s + b); n = tanh(W_n x + b_n + r * (U_n s + b_U)); (1 - z) * n + z * s"""
        wx = sum(self[f"{cell}.W.{part}"] @ value for part, value in x.items()) + self[f"{cell}.b"]
        us = self[f"{cell}.U"] @ s
        r, z = logistic(wx[:SIZE] + us[:SIZE]), logistic(wx[SIZE : 2 * SIZE] + us[SIZE : 2 * SIZE])
        n = np.tanh(wx[2 * SIZE :] + r * (us[2 * SIZE :] + self[f"{cell}.b_U"]))
        return (1 - z) * n + z * s

    def encode(self, ids: list[int]) -> tuple[Array, Array]:
        """h_1 .. h_M, both directions joined, and the summary: the last state of each direction."""
        embedded = self["encoders.source.embedding.E"][ids]
        ways: list[list[Array]] = []
        for direction, order in enumerate((range(len(ids)), range(len(ids) - 1, -1, -1))):
            s, found = np.zeros(SIZE), {}
            for j in order:
                s = found[j] = self.gru(f"encoders.source.layers.0.{direction}", {"x": embedded[j]}, s)
            ways.append([found[j] for j in range(len(ids))])
        states = np.array([np.concatenate(pair) for pair in zip(*ways, strict=True)]).reshape(len(ids), 2 * SIZE)
        ends = [ways[0][-1], ways[1][0]] if ids else [np.zeros(SIZE), np.zeros(SIZE)]
        return states, np.concatenate(ends)

    def look(self, query: Array, states: Array) -> tuple[Array, Array]:
        """e_j = v' tanh(W_q q + W_k h_j); a = softmax(e); c = sum_j a_j h_j"""
        if not len(states):
            return np.zeros(0), np.zeros(2 * SIZE)
        score = "decoder.looking.over.source.score"
        energies = [
            (
                self[f"{score}.v.weight"]
                @ np.tanh(self[f"{score}.W_q.weight"] @ query + self[f"{score}.W_k.weight"] @ h)
            )[0]
            for h in states
        ]
        weights = softmax(np.array(energies))
        return weights, weights @ states

    def start(self, summary: Array) -> Array:
        return np.tanh(self["decoder.start.W_start.weight"] @ summary + self["decoder.start.W_start.bias"])

    def log_probs(self, features: Array) -> Array:
        return np.log(softmax(self["head.V"] @ features + self["head.c"]))


def model(attention: dict[str, object]) -> EncoderDecoder:
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "encoder": {"size": SIZE, "embedding": {"size": 3}},
            "attention": {"score": "additive", "size": 5, **attention},
            "decoder": {
                "size": SIZE,
                "embedding": {"size": 6},
                "start": "source",
                "start_by": "dense",
                "output": "all",
            },
        }
    )
    made = EncoderDecoder(recipe, Sizes({"source": INPUT_SYMBOLS}, OUTPUT_SYMBOLS)).eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.6)
    return made


def batch() -> dict[str, Sequences]:
    longest = max(map(len, SOURCES))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in SOURCES])
    mask = torch.tensor([[j < len(row) for j in range(longest)] for row in SOURCES])
    return {"source": Sequences(ids, mask, [[str(one) for one in row] for row in SOURCES])}


@pytest.mark.parametrize("query", ["previous", "current"])
def test_the_model_is_its_equations(query: str) -> None:
    """previous: s_t = GRU(s_{t-1}, [e(y_{t-1}); c_t]), c_t asked for by s_{t-1};
    current: s_t = GRU(s_{t-1}, [e(y_{t-1}); c_{t-1}]), c_0 = 0, c_t asked for by s_t;
    both: P(y_t) = softmax(V [s_t; c_t; e(y_{t-1})] + c)."""
    made = model({"query": query})
    weights = Weights({name: one.detach().double().numpy() for name, one in made.named_parameters()})
    ready = made.ready(batch(), len(SOURCES))
    state = made.begin(ready)
    ours = []
    for ids in SOURCES:
        states, summary = weights.encode(ids)
        ours.append((states, weights.start(summary), np.zeros(2 * SIZE)))
    for token in TARGETS:
        with torch.no_grad():
            step = made.step(ready, state, torch.full((len(SOURCES),), token))
            given = made.log_probs(step, ready)
        state = step.state
        embedded = weights["decoder.embedding.E"][token]
        for row, (states, s, c) in enumerate(ours):
            if query == "previous":
                a, c = weights.look(s, states)
                s = weights.gru("decoder.layers.0", {"y": embedded, "c": c}, s)
            else:
                s = weights.gru("decoder.layers.0", {"y": embedded, "c": c}, s)
                a, c = weights.look(s, states)
            ours[row] = (states, s, c)
            np.testing.assert_allclose(step.looks["source"].dense()[row, : len(a)], a, atol=1e-5)
            assert (step.looks["source"].dense()[row, len(a) :] == 0).all()
            np.testing.assert_allclose(step.looks["source"].context[row], c, atol=1e-5)
            np.testing.assert_allclose(state.cells[0][0][row], s, atol=1e-5)
            np.testing.assert_allclose(given[row], weights.log_probs(np.concatenate([s, c, embedded])), atol=1e-5)
