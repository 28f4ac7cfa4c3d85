"""Windows taken through a ledger are those of a plain gather, forwards and backwards."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import Tensor

from seq2see.deferred_gradients import DeferredGather

BATCH, PLACES, SIZE, QUERIES, WINDOW = 3, 11, 4, 2, 5


def gathered(source: Tensor, numbers: Tensor) -> Tensor:
    where = numbers.flatten(1)[..., None].expand(-1, -1, source.shape[-1])
    return source.gather(1, where).view(*numbers.shape, -1)


def windows(steps: int) -> list[Tensor]:
    """Numbers that come back within a window and from step to step."""
    return [torch.randint(0, PLACES, (BATCH, QUERIES, WINDOW)) for _ in range(steps)]


def losses(taken: list[Tensor], upstream: list[Tensor]) -> Tensor:
    return torch.stack([(part * weight).square().sum() for part, weight in zip(taken, upstream, strict=True)]).sum()


@pytest.mark.parametrize("steps", [1, 6])
def test_values_and_gradients_are_those_of_a_plain_gather(steps: int) -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    numbers, upstream = windows(steps), [torch.randn(BATCH, QUERIES, WINDOW, SIZE) for _ in range(steps)]
    ours, theirs = 2 * leaf, 2 * leaf
    ledger = DeferredGather(ours)
    taken, plain = [ledger.take(one) for one in numbers], [gathered(theirs, one) for one in numbers]
    for one, other in zip(taken, plain, strict=True):
        assert one.equal(other)
    (expected,) = torch.autograd.grad(losses(plain, upstream), leaf)
    for _ in range(2):
        (grad,) = torch.autograd.grad(losses(taken, upstream), leaf, retain_graph=True)
        torch.testing.assert_close(grad, expected, atol=1e-5, rtol=1e-5)


def test_only_windows_that_count_are_accounted_for() -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    numbers = windows(3)
    ledger = DeferredGather(leaf)
    taken = [ledger.take(one) for one in numbers]
    (grad,) = torch.autograd.grad(taken[1].sum(), leaf, retain_graph=True)
    (expected,) = torch.autograd.grad(gathered(leaf, numbers[1]).sum(), leaf)
    torch.testing.assert_close(grad, expected)
    (again,) = torch.autograd.grad(taken[0].sum() + taken[2].sum(), leaf)
    (expected,) = torch.autograd.grad(gathered(leaf, numbers[0]).sum() + gathered(leaf, numbers[2]).sum(), leaf)
    torch.testing.assert_close(again, expected)


def test_a_way_back_that_ended_early_leaves_no_mean_to_the_next() -> None:
    """The gradient of the query alone, then that of the source."""
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    query = torch.randn(BATCH, QUERIES, SIZE, requires_grad=True)
    shares = torch.softmax(query @ leaf.detach().transpose(1, 2), -1)
    (expected,) = torch.autograd.grad((shares @ leaf).square().sum(), leaf, retain_graph=True)
    loss = DeferredGather(leaf).mix(shares).square().sum()
    torch.autograd.grad(loss, query, retain_graph=True)
    (grad,) = torch.autograd.grad(loss, leaf)
    torch.testing.assert_close(grad, expected, atol=1e-5, rtol=1e-5)


def test_nor_does_it_leave_a_window() -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    [numbers] = windows(1)
    (expected,) = torch.autograd.grad(gathered(leaf, numbers).square().sum(), leaf)
    ledger = DeferredGather(leaf)
    loss = ledger.take(numbers).square().sum()
    torch.autograd.grad(loss, ledger.anchor, retain_graph=True)
    (grad,) = torch.autograd.grad(loss, leaf)
    torch.testing.assert_close(grad, expected, atol=1e-5, rtol=1e-5)


def test_the_source_is_used_elsewhere_too() -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    [numbers] = windows(1)
    (DeferredGather(leaf).take(numbers).sum() + leaf.square().sum()).backward()
    (expected,) = torch.autograd.grad(gathered(leaf, numbers).sum() + leaf.square().sum(), leaf)
    torch.testing.assert_close(leaf.grad, expected)


def test_without_a_gradient_nothing_is_kept() -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    [numbers] = windows(1)
    with torch.no_grad():
        assert not DeferredGather(leaf).take(numbers).requires_grad
    assert not DeferredGather(leaf.detach()).take(numbers).requires_grad


def test_a_gradient_of_a_gradient_is_refused_rather_than_wrong() -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    [numbers] = windows(1)
    (grad,) = torch.autograd.grad(DeferredGather(leaf).take(numbers).square().sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_means_and_windows_together_have_the_gradients_of_plain_products() -> None:
    torch.manual_seed(3)
    shares = [torch.randn(2, 3, 5, requires_grad=True) for _ in range(3)]
    numbers = torch.randint(0, 5, (2, 3, 2))
    grads = []
    for ours in (True, False):
        source = torch.arange(40.0).view(2, 5, 4).sin().requires_grad_()
        ledger = DeferredGather(source)
        means = [ledger.mix(one) if ours else one @ source for one in shares]
        rows = torch.arange(2)[:, None, None]
        window = ledger.take(numbers) if ours else source[rows, numbers]
        for one in shares:
            one.grad = None
        (sum(mean.pow(2).sum() for mean in means) + window.pow(3).sum()).backward()
        grads.append([source.grad, *(one.grad for one in shares)])
    for ours, plain in zip(*grads, strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-5, rtol=1e-5)


def test_a_source_without_a_gradient_is_mixed_as_it_is() -> None:
    source, shares = torch.randn(2, 5, 4), torch.randn(2, 3, 5, requires_grad=True)
    mean = DeferredGather(source).mix(shares)
    torch.testing.assert_close(mean, shares @ source)
    mean.sum().backward()
    assert shares.grad is not None


def test_after_the_way_back_nothing_is_held() -> None:
    source = torch.randn(2, 5, 4, requires_grad=True) * 1.0
    ledger = DeferredGather(source)
    held = weakref.ref(ledger)
    gc.disable()
    try:
        ledger.mix(torch.randn(2, 3, 5)).sum().backward()
        del ledger
        assert held() is None
    finally:
        gc.enable()
