"""A sequence looking at itself: torch's own layer, seen and unseen, and rows in which nothing is real."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from seq2see.attention import SelfAttention, self_attention
from seq2see.errors import UserError

MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)


def ours(*, heads: int = 2) -> SelfAttention:
    torch.manual_seed(1)
    return SelfAttention(8, heads=heads)


def test_it_is_torchs_multi_head_attention() -> None:
    made, theirs = ours(), nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([made.W_q.weight, made.W_k.weight, made.W_v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([made.W_q.bias, made.W_k.bias, made.W_v.bias]))
        theirs.out_proj.weight.copy_(made.W_o.weight)
        theirs.out_proj.bias.copy_(made.W_o.bias)
    states = torch.randn(2, 5, 8)
    found, numbers = made(*made.project(states), mask=MASK[:2, None], need_weights=True)
    wanted, their_weights = theirs(states, states, states, key_padding_mask=~MASK[:2], average_attn_weights=False)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(numbers.weights, their_weights, atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", ["everything", "places", "earlier"])
def test_what_is_found_does_not_depend_on_being_watched(shape: str) -> None:
    """The fused product and the one with weights agree in value and gradient, rows without a place included."""
    made, states = ours(), torch.randn(3, 5, 8, requires_grad=True)
    mask = {"everything": None, "places": MASK[:, None], "earlier": torch.ones(1, 5, 5, dtype=torch.bool).tril()}[shape]
    seen = []
    for need_weights in (False, True):
        found, weights = made(*made.project(states), mask=mask, need_weights=need_weights)
        assert (weights is None) != need_weights
        (gradient,) = torch.autograd.grad(found.square().sum(), states)
        seen.append((found, gradient))
    for unseen, watched in zip(*seen, strict=True):
        assert unseen.isfinite().all()
        torch.testing.assert_close(unseen, watched, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("need_weights", [False, True])
def test_where_nothing_is_real_nothing_is_found(need_weights: bool) -> None:
    made, states = ours(), torch.randn(3, 5, 8, requires_grad=True)
    found, numbers = made(*made.project(states), mask=MASK[:, None], need_weights=need_weights)
    torch.testing.assert_close(found[2], made.W_o.bias.expand(5, 8))
    if numbers is not None:
        weights = numbers.weights
        assert (weights[2] == 0).all()
        assert (weights[1, ..., 2:] == 0).all()
        torch.testing.assert_close(weights[:2].sum(-1), torch.ones(2, 2, 5))
    found.sum().backward()
    assert states.grad is not None
    assert (states.grad[2] == 0).all()
    nothing = made(*made.project(states[:, :0]), mask=MASK[:, None, :0], need_weights=need_weights)[0]
    assert nothing.shape == (3, 0, 8)


def test_one_product_and_single_ones_are_the_same() -> None:
    made, states = ours(), torch.randn(2, 5, 8)
    with torch.no_grad():
        single = made.project(states)
    for one, other in zip(made.project(states), single, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_kept_weights_are_those_of_the_fused_kernel() -> None:
    """In single precision, where both can be told apart from a rounding."""
    queries, keys, values = (torch.randn(3, 2, 5, 4, requires_grad=True) for _ in range(3))
    visible = (MASK | ~MASK.any(-1, keepdim=True))[:, None, None]
    found = []
    for means in (self_attention.kept_weights, scaled_dot_product_attention):
        contexts = means(queries, keys, values, visible)
        found.append((contexts, *torch.autograd.grad(contexts.square().sum(), [queries, keys, values])))
    for kept, fused in zip(*found, strict=True):
        torch.testing.assert_close(kept, fused, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("few", "kept"), [(25, True), (24, False)])
def test_weights_are_kept_of_short_texts_in_bfloat16(monkeypatch: pytest.MonkeyPatch, few: int, kept: bool) -> None:
    calls = []

    def spy(*given: Any) -> Tensor:
        calls.append(given)
        return kept_weights(*given)

    kept_weights = self_attention.kept_weights
    monkeypatch.setattr(self_attention, "kept_weights", spy)
    monkeypatch.setattr(self_attention, "FEW", few)
    made, states = ours(), torch.randn(3, 5, 8, requires_grad=True)
    plain = made(*made.project(states), mask=MASK[:, None])[0]
    assert not calls
    with torch.autocast("cpu", dtype=torch.bfloat16):
        reduced = made(*made.project(states), mask=MASK[:, None])[0]
    assert bool(calls) == kept
    torch.testing.assert_close(plain, reduced.float(), atol=0.05, rtol=0.05)


def test_heads_share_the_size() -> None:
    with pytest.raises(UserError, match="heads: 3 heads cannot share 8 numbers"):
        ours(heads=3)
