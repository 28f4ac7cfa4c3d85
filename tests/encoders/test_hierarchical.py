"""Words, sentences, documents: both levels against their equations, and nothing from padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.encoders import HierarchicalEncoder
from seq2see.encoders.base import Encoded
from seq2see.encoders.hierarchical import HierarchicalEncoderSettings

Array = NDArray[np.float64]
SIZE = 4
DOCUMENTS = [[[5, 6, 7], [8, 9]], [[4, 5, 6, 7]], [[9], [8], [7, 6]]]


def padded(documents: list[list[list[int]]], *, more: int = 0) -> tuple[Tensor, Tensor]:
    sentences = max(map(len, documents)) + more
    words = max(len(one) for document in documents for one in document) + more
    ids = torch.zeros(len(documents), sentences, words, dtype=torch.long)
    for row, document in enumerate(documents):
        for i, sentence in enumerate(document):
            ids[row, i, : len(sentence)] = torch.tensor(sentence)
    return ids, ids > 0


def built(**settings: Any) -> HierarchicalEncoder:
    torch.manual_seed(1)
    return HierarchicalEncoder(HierarchicalEncoderSettings(size=SIZE, pooling_size=3, **settings), symbols=10).eval()


@dataclass
class ByHand:
    """Both levels once more in NumPy: nothing is shared with the encoder but its weights, which are read by name."""

    named: dict[str, Array]
    cell: str

    def step(self, name: str, x: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """(s_t, what an lstm remembers)"""
        s, m = state
        wx, us = self.named[f"{name}.W.x"] @ x + self.named[f"{name}.b"], self.named[f"{name}.U"] @ s
        if self.cell == "rnn":
            return np.tanh(wx + us), m
        if self.cell == "lstm":
            i, f, g, o = np.split(wx + us, 4)
            m = logistic(f) * m + logistic(i) * np.tanh(g)
            return logistic(o) * np.tanh(m), m
        (r_x, z_x, n_x), (r_s, z_s, n_s) = np.split(wx, 3), np.split(us, 3)
        r, z = logistic(r_x + r_s), logistic(z_x + z_s)
        n = np.tanh(n_x + r * (n_s + self.named[f"{name}.b_U"]))
        return (1 - z) * n + z * s, m

    def layers(self, name: str, x: Array) -> tuple[Array, Array]:
        """Two layers in both directions: states (length, 2 size), and the last state of each direction."""
        for layer in range(2):
            ways: list[Array] = []
            for direction in range(2):
                state, found = (np.zeros(SIZE), np.zeros(SIZE)), []
                for one in x[::-1] if direction else x:
                    state = self.step(f"{name}.{layer}.{direction}", one, state)
                    found.append(state[0])
                ways.append(np.array(found))
            x = np.concatenate([ways[0], ways[1][::-1]], axis=1)
        return x, np.concatenate([ways[0][-1], ways[1][-1]])

    def pooled(self, name: str, states: Array) -> tuple[Array, Array]:
        """u_j = tanh(W h_j + b), a = softmax(u_j . u), s = sum a_j h_j"""
        score = f"{name}.look.score"
        u = np.tanh(states @ self.named[f"{score}.W_k.weight"].T + self.named[f"{score}.W_k.bias"])
        powers = np.exp(u @ self.named[f"{score}.v.weight"][0])
        weights = powers / powers.sum()
        return weights @ states, weights

    def read(
        self, document: list[list[int]], *, words: str, pooling: str
    ) -> tuple[Array, Array, list[Array], list[Array]]:
        """States of sentences, the summary, weights and states of words, a document and a sentence at a time."""
        vectors, weights, inner = [], [], []
        for sentence in document:
            states, vector = self.layers("word_layers", self.named["embedding.E"][sentence])
            inner.append(states)
            if words == "attention":
                vector, shares = self.pooled("word_pooling", states)
                weights.append(shares)
            vectors.append(vector)
        states, summary = self.layers("sentence_layers", np.array(vectors))
        if pooling == "attention":
            summary = self.pooled("sentence_pooling", states)[0]
        return states, summary, weights, inner


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("words", ["attention", "last"])
@pytest.mark.parametrize("pooling", ["attention", "last"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_it_is_what_the_equations_say_whatever_the_padding(words: str, pooling: str, cell: str) -> None:
    encoder = built(words=words, pooling=pooling, cell=cell, layers=2)
    ids, mask = padded(DOCUMENTS, more=2)
    with torch.no_grad():
        for parameter in encoder.parameters():  # biases begin at zero, where nothing would tell them from none
            parameter += 0.3 * torch.randn_like(parameter)
        hand = ByHand({name: one.double().numpy() for name, one in encoder.named_parameters()}, cell)
        made: Encoded = encoder(ids, mask)
        for row, document in enumerate(DOCUMENTS):
            states, summary, weights, inner = hand.read(document, words=words, pooling=pooling)
            assert made.places.states[row, : len(document)].numpy() == pytest.approx(states, abs=1e-5)
            assert made.summary[row].numpy() == pytest.approx(summary, abs=1e-5)
            count = sum(map(len, document))
            found_words = made.further["words"].states[row, :count].numpy()
            assert found_words == pytest.approx(np.concatenate(inner), abs=1e-5)
            assert made.further["words"].mask[row].sum() == count
            for i, shares in enumerate(weights):
                start = sum(map(len, document[:i]))
                found = made.maps["words"].weights[row, i]
                assert found[start : start + len(shares)].numpy() == pytest.approx(shares, abs=1e-5)
                assert found.sum() == pytest.approx(1, abs=1e-5)
    assert ("words" in made.maps) == (words == "attention")
    assert made.places.mask.sum(1).tolist() == [2, 1, 3]


def test_words_know_their_sentences() -> None:
    words = built()(*padded(DOCUMENTS)).further["words"]
    assert words.parent[0].tolist() == [0, 0, 0, 1, 1]
    assert words.parent[2][words.mask[2]].tolist() == [0, 1, 2, 2]
    assert words.inside.layout.kind == "sentences"


@pytest.mark.parametrize("words", ["attention", "last"])
def test_an_empty_document_gives_zeros_and_no_nan(words: str) -> None:
    encoder = built(words=words, pooling="attention")
    ids, mask = padded([[[5, 6]], []])
    made = encoder(ids, mask)
    assert made.places.mask.tolist() == [[True], [False]]
    assert not made.summary[1].any()
    (made.summary.sum() + made.places.states.sum() + made.further["words"].states.sum()).backward()
    assert all(torch.isfinite(one.grad).all() for one in encoder.parameters() if one.grad is not None)


def test_every_parameter_learns() -> None:
    encoder = built(words="attention", pooling="attention").train()
    made = encoder(*padded(DOCUMENTS))
    made.summary.square().sum().backward()
    assert all(one.grad is not None and one.grad.norm() > 0 for one in encoder.parameters())
