"""Queries and keys turned by where they stand: products know distances, and nothing of where counting began."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seq2see.attention import SelfAttention
from seq2see.attention.self_attention import rotate
from seq2see.errors import UserError

SIZE, HEADS, PLACES = 12, 2, 5


def by_hand(vectors: np.ndarray, first: int) -> np.ndarray:
    """Pairs as complex numbers, each times a number of length one."""
    half = vectors.shape[-1] // 2
    turned = vectors[..., :half] + 1j * vectors[..., half:]
    for place in range(vectors.shape[-2]):
        for i in range(half):
            turned[..., place, i] *= np.exp(1j * (first + place) * 10_000 ** (-i / half))
    return np.concatenate([turned.real, turned.imag], axis=-1)


@pytest.mark.parametrize("first", [0, 7])
def test_it_is_a_rotation_of_complex_numbers(first: int) -> None:
    given = torch.randn(3, HEADS, PLACES, 6)
    assert rotate(given, first).numpy() == pytest.approx(by_hand(given.double().numpy(), first), abs=1e-5)


def test_attention_is_that_of_turned_queries_and_keys() -> None:
    torch.manual_seed(1)
    look = SelfAttention(SIZE, heads=HEADS, rotary=True).eval()
    states = torch.randn(2, PLACES, SIZE)
    with torch.no_grad():
        queries, keys, values = look.project(states)
        plain, _ = look(queries[:, :, 2:], keys, values)
        told, numbers = look(queries[:, :, 2:], keys, values, need_weights=True)
    torch.testing.assert_close(plain, told, atol=1e-5, rtol=0)
    asked = (states @ look.W_q.weight.T + look.W_q.bias).detach().double().numpy()
    for row in range(2):
        for head in range(HEADS):
            own = slice(head * 6, head * 6 + 6)
            q, k = by_hand(asked[row, 2:, own], 2), by_hand(keys[row, head].double().numpy(), 0)
            energies = np.exp(q @ k.T / 6**0.5)
            wanted = energies / energies.sum(-1, keepdims=True)
            assert numbers.weights[row, head].numpy() == pytest.approx(wanted, abs=1e-5)


def test_order_is_felt_and_where_counting_begins_is_not() -> None:
    torch.manual_seed(1)
    look, states = SelfAttention(SIZE, heads=HEADS, rotary=True), torch.randn(1, PLACES, SIZE)
    queries, keys, values = look.project(states)
    last = queries[:, :, -1:]
    first, _ = look(last, keys, values)
    turned, _ = look(last, keys.flip(2), values.flip(2))
    assert not torch.allclose(first, turned, atol=1e-4)
    padding = torch.randn(1, HEADS, 400, 6)
    mask = torch.arange(400 + PLACES)[None, None] >= 400
    late, _ = look(last, torch.cat([padding, keys], 2), torch.cat([padding, values], 2), mask=mask)
    torch.testing.assert_close(first, late, atol=1e-4, rtol=0)


def test_an_odd_share_cannot_be_turned() -> None:
    with pytest.raises(UserError, match="positions: rotary turns pairs of numbers"):
        SelfAttention(6, heads=2, rotary=True)
