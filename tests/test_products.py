"""Hoisted products: the same values as plain ones in a loop over time, the same gradients taken all at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seq2see.deferred_gradients import DeferredProduct, Product, plain_product

ROWS, WIDTH, STEPS = 3, 4, 5


def unrolled(product: Product, W: Tensor, x: Tensor, *, steps: int = STEPS) -> Tensor:
    """s_t = tanh(x_t + W s_{t-1}) with the upper half of W used once more: a weight and a slice of it."""
    s = torch.zeros(ROWS, WIDTH)
    for t in range(steps):
        s = torch.tanh(x[:, t] + product(s, W, "W"))
        s = s + torch.cat([product(s, W[:2], "half"), s[:, 2:]], 1)
    return s


@pytest.mark.parametrize("steps", [STEPS, 3], ids=["all steps", "fewer steps than announced"])
def test_values_and_gradients_are_those_of_the_plain_product(steps: int) -> None:
    W, x = torch.randn(WIDTH, WIDTH, requires_grad=True), torch.randn(ROWS, STEPS, WIDTH, requires_grad=True)
    plain, hoisted = unrolled(plain_product, W, x, steps=steps), unrolled(DeferredProduct(STEPS), W, x, steps=steps)
    torch.testing.assert_close(hoisted, plain, atol=1e-6, rtol=0)
    ours, theirs = (torch.autograd.grad(one.pow(2).sum(), [W, x]) for one in (hoisted, plain))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_a_frozen_weight_stays_without_a_gradient() -> None:
    W, x = torch.randn(WIDTH, WIDTH), torch.randn(ROWS, STEPS, WIDTH, requires_grad=True)
    ours, theirs = (
        torch.autograd.grad(unrolled(product, W, x).sum(), x)[0] for product in (DeferredProduct(STEPS), plain_product)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_at_half_precision_gradients_arrive_at_full_precision_and_close() -> None:
    W, x = torch.randn(WIDTH, WIDTH, requires_grad=True), torch.randn(ROWS, STEPS, WIDTH)
    (full,) = torch.autograd.grad(unrolled(plain_product, W, x, steps=2).sum(), W)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        given = unrolled(DeferredProduct(STEPS), W, x, steps=2)
    (half,) = torch.autograd.grad(given.sum(), W)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, full, atol=0.3, rtol=0.1)
    assert not half.equal(full)
