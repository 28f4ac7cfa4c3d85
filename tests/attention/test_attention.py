"""Weights and contexts: masks, empty rows, several queries, forced weights, and a score that remembers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from seq2see.attention import Attention, Candidates, Score, build_score, masked_softmax, scores
from seq2see.attention.scopes import LocalMonotonic
from seq2see.attention.scores import Additive, Dot
from seq2see.memory import Places, View

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)
EMPTY = 2


def places(*, states: Tensor | None = None) -> Places:
    return Places(torch.randn(4, 4, 6) if states is None else states, MASK)


@pytest.mark.parametrize("name", scores.settings)
def test_weights_and_context_are_softmax_and_weighted_mean(name: str) -> None:
    attention = Attention(build_score(name, 6, 6))
    given, query = places(), torch.randn(4, 3, 6)
    look = attention(query, attention.prepare(given))
    energies, states = look.energies.detach().double().numpy(), given.states.double().numpy()
    for b, length in enumerate(MASK.sum(1).tolist()):
        for t in range(3):
            powers = np.exp(energies[b, t, :length])
            expected = powers / powers.sum()
            np.testing.assert_allclose(look.weights[b, t, :length].detach(), expected, atol=1e-5)
            np.testing.assert_allclose(look.context[b, t].detach(), expected @ states[b, :length], atol=1e-5)


@pytest.mark.parametrize("name", scores.settings)
def test_padding_gets_exactly_nothing_and_never_poisons_a_gradient(name: str) -> None:
    attention = Attention(build_score(name, 6, 6))
    states, query = torch.randn(4, 4, 6), torch.randn(4, 3, 6, requires_grad=True)
    states[~MASK] = 1e4
    states[3, 2] = 0.0
    states.requires_grad_()
    look = attention(query, attention.prepare(places(states=states)))
    assert (look.weights.transpose(1, 2)[~MASK] == 0).all()
    assert (look.weights[EMPTY] == 0).all()
    assert (look.context[EMPTY] == 0).all()
    torch.testing.assert_close(look.weights.sum(-1), MASK.any(1)[:, None].float().expand(4, 3))
    look.context.pow(2).sum().backward()
    assert states.grad is not None
    assert (states.grad[~MASK] == 0).all()
    assert query.grad is None or (query.grad[EMPTY] == 0).all()
    for tensor in (states, query, *attention.parameters()):
        assert tensor.grad is None or torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("name", scores.settings)
def test_several_queries_are_looked_at_as_one_at_a_time(name: str) -> None:
    attention = Attention(build_score(name, 6, 6))
    query = torch.randn(4, 3, 6)
    prepared = attention.prepare(places())
    together = attention(query, prepared)
    for t in range(3):
        one = attention(query[:, t : t + 1], prepared)
        torch.testing.assert_close(one.context[:, 0], together.context[:, t], atol=1e-6, rtol=0)
        torch.testing.assert_close(one.weights[:, 0], together.weights[:, t], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", scores.settings)
def test_a_row_looks_alike_alone_and_in_a_padded_batch(name: str) -> None:
    attention = Attention(build_score(name, 6, 6))
    given, query = places(), torch.randn(4, 1, 6)
    batch = attention(query, attention.prepare(given))
    alone = attention(query[1:2], attention.prepare(Places(given.states[1:2, :2], MASK[1:2, :2])))
    torch.testing.assert_close(alone.context[0], batch.context[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(alone.weights[0], batch.weights[1, :, :2], atol=1e-5, rtol=0)


def test_an_input_of_no_places_at_all_gives_zeros() -> None:
    attention = Attention(Dot(6, 6))
    look = attention(torch.randn(2, 1, 6), attention.prepare(Places(torch.zeros(2, 0, 6), torch.zeros(2, 0) > 0)))
    assert look.context.equal(torch.zeros(2, 1, 6))


def test_selected_rows_of_what_was_prepared_serve_as_before() -> None:
    attention = Attention(Additive(6, 6, size=5))
    query, prepared = torch.randn(4, 1, 6), attention.prepare(places())
    rows = torch.tensor([3, 0])
    torch.testing.assert_close(
        attention(query[rows], prepared.select(rows)).context, attention(query, prepared).context[rows]
    )


def test_forced_weights_take_the_place_of_the_models_own_where_they_are_given() -> None:
    attention = Attention(Additive(6, 6, size=5))
    given, query = places(), torch.randn(4, 2, 6)
    own = attention(query, attention.prepare(given))
    forced = torch.full((4, 2, 4), torch.nan)
    forced[0, 1] = torch.tensor([0.0, 0.0, 1.0, 0.0])
    look = attention(query, attention.prepare(given), forced=forced)
    torch.testing.assert_close(look.context[0, 1], given.states[0, 2])
    assert look.weights[0, 1].tolist() == [0, 0, 1, 0]
    assert look.weights[0, 0].equal(own.weights[0, 0])
    assert look.weights[1:].equal(own.weights[1:])


def test_energies_are_minus_infinity_at_padding() -> None:
    attention = Attention(Additive(6, 6, size=5))
    energies = attention(torch.randn(4, 2, 6), attention.prepare(places())).dense_energies().transpose(1, 2)
    assert (energies[~MASK] == -torch.inf).all()
    assert torch.isfinite(energies[MASK]).all()


def test_weights_are_of_single_precision_whatever_the_energies() -> None:
    energies = torch.tensor([[[100.0, 99.0, -100.0]]], dtype=torch.bfloat16)
    weights = masked_softmax(energies, torch.tensor([[True, True, True]]))
    assert weights.dtype == torch.float32
    assert weights[0, 0, 0].item() == pytest.approx(1 / (1 + np.exp(-1)), abs=1e-6)


@pytest.mark.parametrize("name", scores.settings)
@pytest.mark.parametrize("local", [False, True])
def test_a_model_of_half_precision_looks_as_one_of_single_precision(name: str, local: bool) -> None:
    attention = Attention(build_score(name, 6, 6), scope=LocalMonotonic(View(6), reach=2) if local else None)
    given, query = places(), torch.randn(4, 3, 6)
    exact = attention(query, attention.prepare(given))
    attention.bfloat16()
    coarse = attention(query.bfloat16(), attention.prepare(places(states=given.states.bfloat16())))
    assert coarse.context.dtype == torch.bfloat16
    torch.testing.assert_close(coarse.context.float(), exact.context, atol=0.1, rtol=0.1)


def test_energies_of_any_size_overflow_nothing() -> None:
    weights = masked_softmax(torch.tensor([[[3e38, -3e38, 0.0]]]), torch.tensor([[True, True, False]]))
    assert weights.tolist() == [[[1.0, 0.0, 0.0]]]


class Tired(Score):
    """e_j = q . k_j - 2 sum of earlier weights of j: the simplest score that remembers."""

    remembers = True

    def forward(self, query: Tensor, candidates: Candidates) -> Tensor:
        assert candidates.past is not None
        return query @ candidates.keys.transpose(1, 2) - 2 * candidates.past


def test_a_score_may_remember_its_earlier_looks() -> None:
    attention = Attention(Tired(6, 6))
    prepared = attention.prepare(places())
    query = torch.randn(4, 2, 6)
    past = attention.begin(prepared, 2)
    assert past is not None
    first = attention(query, prepared, past=past)
    second = attention(query, prepared, past=first.past)
    assert first.past is not None
    assert first.past.equal(first.weights)
    torch.testing.assert_close(second.energies, first.energies - 2 * first.weights)
    torch.testing.assert_close(second.past, first.weights + second.weights)
