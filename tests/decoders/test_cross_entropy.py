"""The fused cross entropy is torch's, and so are its gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from seq2see.decoders import output_heads
from seq2see.decoders.output_heads import linear_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("precision", [torch.float64, torch.float32])
@pytest.mark.parametrize(("rows", "symbols"), [(1, 1), (7, 16), (300, 37), (0, 5), (300, 613)])
def test_it_is_torchs(rows: int, symbols: int, smoothing: float, precision: torch.dtype) -> None:
    """Also for more rows than a block has, and for weights that are packed."""
    features = torch.randn(rows, 8, dtype=precision, requires_grad=True)
    weight = torch.randn(symbols, 8, dtype=precision, requires_grad=True)
    bias = torch.randn(symbols, dtype=precision, requires_grad=True)
    targets = torch.randint(0, symbols, (rows,))
    ours = linear_cross_entropy(features, weight, bias, targets, smoothing=smoothing)
    theirs = cross_entropy(linear(features, weight, bias), targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    parts = (features, weight, bias)
    torch.testing.assert_close(torch.autograd.grad(0.3 * ours, parts), torch.autograd.grad(0.3 * theirs, parts))


def test_the_gradient_is_the_numerical_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows are divided into blocks, and blocks into parts."""
    monkeypatch.setattr(output_heads, "BLOCK", 3)
    monkeypatch.setattr(output_heads, "IN_CACHE", 32)
    parts = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 3), (7, 3), (7,))]
    targets = torch.tensor([0, 6, 2, 2, 5])
    assert torch.autograd.gradcheck(lambda *given: linear_cross_entropy(*given, targets, smoothing=0.2), parts)


def test_improbable_targets_have_a_finite_loss() -> None:
    weight, features = torch.tensor([[1.0], [-1.0]]), torch.tensor([[500.0]])
    assert linear_cross_entropy(features, weight, torch.zeros(2), torch.tensor([1])).item() == pytest.approx(1000.0)


def test_at_half_precision_gradients_arrive_at_full_precision_and_close() -> None:
    features, weight = torch.randn(40, 16, requires_grad=True), torch.randn(33, 16, requires_grad=True)
    bias, targets = torch.randn(33, requires_grad=True), torch.randint(0, 33, (40,))
    exact = torch.autograd.grad(linear_cross_entropy(features, weight, bias, targets), (features, weight, bias))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = linear_cross_entropy(features, weight, bias, targets)
    assert loss.dtype == torch.float32
    for ours, other in zip(torch.autograd.grad(loss, (features, weight, bias)), exact, strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, other, atol=0.1, rtol=0.05)
