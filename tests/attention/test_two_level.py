"""Words looked at through their sentences: the product of both levels, over words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from seq2see.attention import Prepared, TwoLevelAttention, build_attention
from seq2see.looks import Layout
from seq2see.memory import Places, View
from tests.settings import attention_of

SIZE, QUERY = 6, 5
PARTS = [[3, 1, 2], [4], []]
"""Words of each sentence of three documents, the last one empty."""


def document(parts: list[list[int]], *, seed: int = 0) -> Places:
    """Words and sentences of random states; what is padding holds numbers too, which must not matter."""
    draw = torch.Generator().manual_seed(seed)
    lengths, count = [sum(one) for one in parts], max(map(len, parts))
    mask = torch.tensor([[j < n for j in range(max(lengths))] for n in lengths])
    parent = torch.zeros_like(mask, dtype=torch.long)
    for row, one in enumerate(parts):
        parent[row, : lengths[row]] = torch.arange(len(one)).repeat_interleave(torch.tensor(one, dtype=torch.long))
    real = torch.tensor([[i < len(one) for i in range(count)] for one in parts])
    sentences = Places(torch.randn(len(parts), count, SIZE, generator=draw), real, Layout("sentences"))
    return Places(torch.randn(*mask.shape, SIZE, generator=draw), mask, Layout("tokens"), None, parent, sentences)


def built(**settings: object) -> TwoLevelAttention:
    torch.manual_seed(3)
    given = attention_of(over="x.words", through="sentences", size=4, **settings)
    made = build_attention(given, query=QUERY, view=View(SIZE, "tokens", inside=View(SIZE, "sentences")))
    assert isinstance(made, TwoLevelAttention)
    return made


def softmax(numbers: np.ndarray) -> np.ndarray:
    risen = np.exp(numbers - numbers.max())
    return np.asarray(risen / risen.sum())


def additive(score: torch.nn.Module, query: np.ndarray, states: np.ndarray) -> np.ndarray:
    W_q, W_k, v = (part.weight.detach().double().numpy() for part in (score.W_q, score.W_k, score.v))  # type: ignore[union-attr]
    return np.asarray(np.tanh(W_q @ query + states @ W_k.T) @ v[0])


def test_it_is_the_product_of_both_levels() -> None:
    look, places = built(score="additive"), document(PARTS)
    query = torch.randn(3, 2, QUERY)
    seen = look(query, look.prepare(places))
    assert places.inside is not None
    for row, parts in enumerate(PARTS):
        for asked in range(2):
            q = query[row, asked].double().numpy()
            weights, ends = [], np.cumsum([0, *parts])
            if parts:
                sentences = places.inside.states[row, : len(parts)].double().numpy()
                above = softmax(additive(look.larger.score, q, sentences))
                for i, share in enumerate(above):
                    words = places.states[row, ends[i] : ends[i + 1]].double().numpy()
                    weights += list(share * softmax(additive(look.smaller.score, q, words)))
                assert seen.larger[row, asked, : len(parts)].detach().numpy() == pytest.approx(above, abs=1e-5)
            weights += [0.0] * (places.mask.shape[1] - len(weights))
            assert seen.weights[row, asked].detach().numpy() == pytest.approx(np.array(weights), abs=1e-5)
            context = np.array(weights) @ places.states[row].double().numpy()
            assert seen.context[row, asked].detach().numpy() == pytest.approx(context, abs=1e-5)


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("score", ["general", "additive", "coverage", "static", "uniform"])
@pytest.mark.parametrize("choice", ["soft", "hard"])
def test_weights_of_words_sum_to_one_and_padding_gets_none(normaliser: str, score: str, choice: str) -> None:
    look, places = built(score=score, normaliser=normaliser, choice=choice, temperature=0.5), document(PARTS)
    prepared = look.prepare(places)
    past = None
    for _ in range(2):
        seen = look(torch.randn(3, 2, QUERY), prepared, past=past)
        past = seen.past
        assert torch.allclose(seen.weights.sum(-1), torch.tensor([[1.0], [1.0], [0.0]]).expand(-1, 2), atol=1e-5)
        assert not seen.weights.masked_select(~places.mask[:, None]).any()
        assert torch.isfinite(seen.context).all()


def test_a_document_alone_is_looked_at_as_in_a_batch() -> None:
    look, places = built(score="additive"), document(PARTS)
    query = torch.randn(3, 1, QUERY)
    together, alone = look.prepare(places), look.prepare(places.select(torch.tensor([1])))
    ours = look(query, together).weights[1]
    assert torch.allclose(look(query[1:2], alone).weights[0], ours, atol=1e-6)
    chosen: Prepared = together.select(torch.tensor([2, 1]))
    assert torch.allclose(look(query[[2, 1]], chosen).weights[1], ours, atol=1e-6)


def test_the_caller_hands_in_weights_of_words() -> None:
    look, places = built(score="additive"), document(PARTS)
    forced = torch.full((3, 1, 6), torch.nan)
    forced[0, 0] = torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    seen = look(torch.randn(3, 1, QUERY), look.prepare(places), forced=forced)
    assert torch.equal(seen.context[0, 0], places.states[0, 3])
    assert torch.equal(seen.larger[0, 0], torch.tensor([0.0, 1.0, 0.0]))


def test_both_levels_learn() -> None:
    look, places = built(score="additive"), document(PARTS)
    places.states.requires_grad_()
    look(torch.randn(3, 1, QUERY), look.prepare(places)).context.square().sum().backward()

    def norm(gradient: Tensor | None) -> float:
        return 0.0 if gradient is None else float(gradient.norm())

    assert all(norm(parameter.grad) > 0 for parameter in look.parameters())
    assert places.states.grad is not None
    assert torch.isfinite(places.states.grad).all()
