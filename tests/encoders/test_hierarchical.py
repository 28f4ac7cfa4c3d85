"""Words, sentences, documents: both levels against their equations, and nothing from padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see.encoders import HierarchicalEncoder
from seq2see.encoders.base import Encoded
from seq2see.encoders.layers import Read
from seq2see.recipe.schema import HierarchicalEncoderSettings

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
    return HierarchicalEncoder(HierarchicalEncoderSettings(size=4, pooling_size=3, **settings), symbols=10).eval()


def pooled(pooling: Any, states: Tensor) -> tuple[Tensor, Tensor]:
    """u_j = tanh(W h_j + b), a = softmax(u_j . u), s = sum a_j h_j"""
    score = pooling.look.score
    u = torch.tanh(states @ score.W_k.weight.T + score.W_k.bias)
    weights = torch.softmax(u @ score.v.weight[0], 0)
    return weights @ states, weights


def by_hand(
    encoder: HierarchicalEncoder, document: list[list[int]]
) -> tuple[Tensor, Tensor, list[Tensor], list[Tensor]]:
    """States of sentences, the summary, weights and states of words, a document and a sentence at a time."""
    vectors, weights, words = [], [], []
    for sentence in document:
        ids = torch.tensor([sentence])
        read: Read = encoder.word_layers(encoder.embedding(ids), torch.ones_like(ids, dtype=torch.bool))
        words.append(read.states[0])
        vector = read.last[0]
        if encoder.word_pooling is not None:
            vector, shares = pooled(encoder.word_pooling, read.states[0])
            weights.append(shares)
        vectors.append(vector)
    real = torch.ones(1, len(document), dtype=torch.bool)
    read = encoder.sentence_layers(torch.stack(vectors)[None], real)
    summary = read.last[0]
    if encoder.sentence_pooling is not None:
        summary = pooled(encoder.sentence_pooling, read.states[0])[0]
    return read.states[0], summary, weights, words


@pytest.mark.parametrize("words", ["attention", "last"])
@pytest.mark.parametrize("pooling", ["attention", "last"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_it_is_what_the_equations_say_whatever_the_padding(words: str, pooling: str, cell: str) -> None:
    encoder = built(words=words, pooling=pooling, cell=cell, layers=2)
    ids, mask = padded(DOCUMENTS, more=2)
    with torch.no_grad():
        made: Encoded = encoder(ids, mask)
        for row, document in enumerate(DOCUMENTS):
            states, summary, weights, inner = by_hand(encoder, document)
            assert torch.allclose(made.places.states[row, : len(document)], states, atol=1e-5)
            assert torch.allclose(made.summary[row], summary, atol=1e-5)
            count = sum(map(len, document))
            assert torch.allclose(made.further["words"].states[row, :count], torch.cat(inner), atol=1e-5)
            assert made.further["words"].mask[row].sum() == count
            for i, shares in enumerate(weights):
                start = sum(map(len, document[:i]))
                found = made.maps["words"].weights[row, i]
                assert torch.allclose(found[start : start + len(shares)], shares, atol=1e-5)
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
