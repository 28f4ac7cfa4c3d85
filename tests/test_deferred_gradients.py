"""Deferred gradients: values and gradients are those of plain operations in a loop over time."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import Tensor

from seq2see.cells import GRU, LSTM, Cell, Plain
from seq2see.deferred_gradients import (
    BackwardPass,
    DeferredCache,
    DeferredGather,
    DeferredProduct,
    Product,
    plain_product,
)

ROWS, WIDTH, STEPS = 3, 4, 5
BATCH, PLACES, SIZE, QUERIES, WINDOW = 3, 11, 4, 2, 5


# --- Products with weights


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


# --- Windows and weighted means


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
    gather = DeferredGather(ours)
    taken, plain = [gather.take(one) for one in numbers], [gathered(theirs, one) for one in numbers]
    for one, other in zip(taken, plain, strict=True):
        assert one.equal(other)
    (expected,) = torch.autograd.grad(losses(plain, upstream), leaf)
    for _ in range(2):
        (grad,) = torch.autograd.grad(losses(taken, upstream), leaf, retain_graph=True)
        torch.testing.assert_close(grad, expected, atol=1e-5, rtol=1e-5)


def test_only_windows_that_count_are_accounted_for() -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    numbers = windows(3)
    gather = DeferredGather(leaf)
    taken = [gather.take(one) for one in numbers]
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
    loss = DeferredGather(leaf).mean(shares).square().sum()
    torch.autograd.grad(loss, query, retain_graph=True)
    (grad,) = torch.autograd.grad(loss, leaf)
    torch.testing.assert_close(grad, expected, atol=1e-5, rtol=1e-5)


def test_nor_does_it_leave_a_window() -> None:
    leaf = torch.randn(BATCH, PLACES, SIZE, requires_grad=True)
    [numbers] = windows(1)
    (expected,) = torch.autograd.grad(gathered(leaf, numbers).square().sum(), leaf)
    gather = DeferredGather(leaf)
    loss = gather.take(numbers).square().sum()
    torch.autograd.grad(loss, gather.anchor, retain_graph=True)
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
        gather = DeferredGather(source)
        means = [gather.mean(one) if ours else one @ source for one in shares]
        rows = torch.arange(2)[:, None, None]
        window = gather.take(numbers) if ours else source[rows, numbers]
        for one in shares:
            one.grad = None
        (sum(mean.pow(2).sum() for mean in means) + window.pow(3).sum()).backward()
        grads.append([source.grad, *(one.grad for one in shares)])
    for ours, plain in zip(*grads, strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-5, rtol=1e-5)


def test_a_source_without_a_gradient_is_mixed_as_it_is() -> None:
    source, shares = torch.randn(2, 5, 4), torch.randn(2, 3, 5, requires_grad=True)
    mean = DeferredGather(source).mean(shares)
    torch.testing.assert_close(mean, shares @ source)
    mean.sum().backward()
    assert shares.grad is not None


def test_after_the_way_back_nothing_is_held() -> None:
    source = torch.randn(2, 5, 4, requires_grad=True) * 1.0
    gather = DeferredGather(source)
    held = weakref.ref(gather)
    gc.disable()
    try:
        gather.mean(torch.randn(2, 3, 5)).sum().backward()
        del gather
        assert held() is None
    finally:
        gc.enable()


# --- States that later steps attend to


def inputs(*, steps: int = 4) -> tuple[list[Tensor], Tensor]:
    torch.manual_seed(3)
    return [torch.randn(2, 3).requires_grad_() for _ in range(steps)], torch.randn(3, 3).requires_grad_()


def with_cache(xs: list[Tensor], w: Tensor) -> tuple[Tensor, DeferredCache]:
    cache, state, outputs = DeferredCache(len(xs)), torch.zeros(2, 3), list[Tensor]()
    for number, x in enumerate(xs):
        entering = x + 0.5 * state
        if number:
            energies = entering[:, None] @ cache.keys(state).transpose(1, 2)
            entering = entering + cache.mean(torch.softmax(energies, -1), state).squeeze(1)
        state = torch.tanh(entering)
        state = cache.append(state, state @ w)
        outputs.append(state)
    return torch.stack(outputs, 1), cache


def joined_anew(xs: list[Tensor], w: Tensor) -> Tensor:
    state, outputs = torch.zeros(2, 3), list[Tensor]()
    for number, x in enumerate(xs):
        entering = x + 0.5 * state
        if number:
            before = torch.stack(outputs, 1)
            energies = entering[:, None] @ (before @ w).transpose(1, 2)
            entering = entering + (torch.softmax(energies, -1) @ before).squeeze(1)
        state = torch.tanh(entering)
        outputs.append(state)
    return torch.stack(outputs, 1)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_values_and_gradients_are_those_of_joining_anew(steps: int) -> None:
    xs, w = inputs(steps=steps)
    deferred, plain = with_cache(xs, w)[0], joined_anew(xs, w)
    torch.testing.assert_close(deferred, plain)
    weights = torch.linspace(-1, 2, deferred.numel()).view_as(deferred)
    leaves = xs if steps == 1 else [*xs, w]  # the first step looks at nothing, so its key is never asked for
    found = torch.autograd.grad((deferred * weights).sum(), leaves)
    wanted = torch.autograd.grad((plain * weights).sum(), leaves)
    torch.testing.assert_close(found, wanted)


def test_a_gradient_can_be_asked_for_twice() -> None:
    xs, w = inputs()
    outputs, _ = with_cache(xs, w)
    first = torch.autograd.grad(outputs.sum(), [*xs, w], retain_graph=True)
    again = torch.autograd.grad(outputs.sum(), [*xs, w], retain_graph=True)
    torch.testing.assert_close(first, again)
    (early,) = torch.autograd.grad(outputs[:, 1].sum(), [xs[0]])
    (wanted,) = torch.autograd.grad(joined_anew(xs, w)[:, 1].sum(), [xs[0]])
    torch.testing.assert_close(early, wanted)


def test_a_way_back_that_ended_early_leaves_nothing_to_the_next() -> None:
    """Asked for the last input alone, the pass never comes to the states before it; the next may not look at all."""
    xs, w = inputs()
    outputs, plain = with_cache(xs, w)[0], joined_anew(xs, w)
    torch.autograd.grad(outputs.square().sum(), [xs[-1]], retain_graph=True)
    found = torch.autograd.grad(outputs.square().sum(), [*xs, w], retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(plain.square().sum(), [*xs, w], retain_graph=True))
    torch.autograd.grad(outputs.square().sum(), [xs[2]], retain_graph=True)
    (first,) = torch.autograd.grad(outputs[:, 0].sum(), [xs[0]])
    torch.testing.assert_close(first, torch.autograd.grad(plain[:, 0].sum(), [xs[0]])[0])


def test_it_remembers_how_each_step_looked() -> None:
    cache = with_cache(*inputs())[1]
    assert cache.weights.shape == (2, 4, 4)
    assert not cache.weights.requires_grad
    assert (cache.weights.triu() == 0).all()
    torch.testing.assert_close(cache.weights.sum(-1), torch.tensor([[0.0, 1, 1, 1]] * 2))


# --- Private functions of torch, and what happens without them


@pytest.fixture
def without_pass_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that does not number its backward passes."""
    monkeypatch.delattr(torch._C, "_current_graph_task_id")


def test_torch_numbers_its_backward_passes() -> None:
    """If this fails, `torch._C._current_graph_task_id` is gone: gradients stay right, but long inputs train slowly.

    `DeferredGather` and `DeferredCache` then use plain operations; see `BackwardPass`.
    """
    assert BackwardPass.is_known()


@pytest.mark.usefixtures("without_pass_numbers")
def test_without_pass_numbers_windows_and_means_are_plain_operations() -> None:
    leaf, weights = torch.randn(BATCH, PLACES, SIZE, requires_grad=True), torch.rand(BATCH, QUERIES, PLACES)
    [numbers] = windows(1)
    gather = DeferredGather(2 * leaf)
    ours = gather.take(numbers).square().sum() + gather.mean(weights).square().sum()
    theirs = gathered(2 * leaf, numbers).square().sum() + (weights @ (2 * leaf)).square().sum()
    torch.testing.assert_close(torch.autograd.grad(ours, leaf), torch.autograd.grad(theirs, leaf))


@pytest.mark.usefixtures("without_pass_numbers")
def test_without_pass_numbers_the_cache_is_plain_too() -> None:
    xs, w = inputs()
    (ours, cache), plain = with_cache(xs, w), joined_anew(xs, w)
    torch.testing.assert_close(ours, plain)
    grads = [torch.autograd.grad(one.square().sum(), [*xs, w]) for one in (ours, plain)]
    torch.testing.assert_close(*grads)
    torch.testing.assert_close(cache.weights.sum(-1), torch.tensor([[0.0, 1, 1, 1]] * 2))


KERNELS = [(Plain, "rnn_tanh"), (GRU, "gru"), (LSTM, "lstm")]


@pytest.mark.parametrize(("kind", "kernel"), KERNELS)
def test_torch_offers_its_recurrent_kernels(kind: type[Cell], kernel: str) -> None:
    """If this fails, `torch.gru` (`torch.lstm`, `torch.rnn_tanh`) is gone or changed: cells then run their own loop."""
    cell, x = kind({"x": WIDTH}, SIZE), torch.randn(ROWS, STEPS, WIDTH)
    assert hasattr(torch, kernel)
    assert cell.fused(x, cell.zeros(x, ROWS)) is not None


@pytest.mark.parametrize(("kind", "kernel"), KERNELS)
def test_without_a_kernel_a_cell_runs_its_own_loop(
    kind: type[Cell], kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, x = kind({"x": WIDTH}, SIZE), torch.randn(ROWS, STEPS, WIDTH)
    outputs, state = cell.run({"x": x})
    monkeypatch.delattr(torch, kernel)
    looped, last = cell.run({"x": x})
    torch.testing.assert_close(looped, outputs)
    torch.testing.assert_close(last, state)
