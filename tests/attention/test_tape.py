"""Looks back at what a loop has written: the gradients that joining the states anew at every step would give."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seq2see.attention import DeferredCache


def inputs(*, steps: int = 4) -> tuple[list[Tensor], Tensor]:
    torch.manual_seed(3)
    return [torch.randn(2, 3).requires_grad_() for _ in range(steps)], torch.randn(3, 3).requires_grad_()


def with_tape(xs: list[Tensor], w: Tensor) -> tuple[Tensor, DeferredCache]:
    tape, state, outputs = DeferredCache(len(xs)), torch.zeros(2, 3), list[Tensor]()
    for number, x in enumerate(xs):
        entering = x + 0.5 * state
        if number:
            energies = entering[:, None] @ tape.keys(state).transpose(1, 2)
            entering = entering + tape.mix(torch.softmax(energies, -1), state).squeeze(1)
        state = torch.tanh(entering)
        state = tape.write(state, state @ w)
        outputs.append(state)
    return torch.stack(outputs, 1), tape


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
    taped, plain = with_tape(xs, w)[0], joined_anew(xs, w)
    torch.testing.assert_close(taped, plain)
    weights = torch.linspace(-1, 2, taped.numel()).view_as(taped)
    leaves = xs if steps == 1 else [*xs, w]  # the first step looks at nothing, so its key is never asked for
    found = torch.autograd.grad((taped * weights).sum(), leaves)
    wanted = torch.autograd.grad((plain * weights).sum(), leaves)
    torch.testing.assert_close(found, wanted)


def test_a_gradient_can_be_asked_for_twice() -> None:
    xs, w = inputs()
    outputs, _ = with_tape(xs, w)
    first = torch.autograd.grad(outputs.sum(), [*xs, w], retain_graph=True)
    again = torch.autograd.grad(outputs.sum(), [*xs, w], retain_graph=True)
    torch.testing.assert_close(first, again)
    (early,) = torch.autograd.grad(outputs[:, 1].sum(), [xs[0]])
    (wanted,) = torch.autograd.grad(joined_anew(xs, w)[:, 1].sum(), [xs[0]])
    torch.testing.assert_close(early, wanted)


def test_a_way_back_that_ended_early_leaves_nothing_to_the_next() -> None:
    """Asked for the last input alone, the pass never comes to the states before it; the next may not look at all."""
    xs, w = inputs()
    outputs, plain = with_tape(xs, w)[0], joined_anew(xs, w)
    torch.autograd.grad(outputs.square().sum(), [xs[-1]], retain_graph=True)
    found = torch.autograd.grad(outputs.square().sum(), [*xs, w], retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(plain.square().sum(), [*xs, w], retain_graph=True))
    torch.autograd.grad(outputs.square().sum(), [xs[2]], retain_graph=True)
    (first,) = torch.autograd.grad(outputs[:, 0].sum(), [xs[0]])
    torch.testing.assert_close(first, torch.autograd.grad(plain[:, 0].sum(), [xs[0]])[0])


def test_it_remembers_how_each_step_looked() -> None:
    tape = with_tape(*inputs())[1]
    assert tape.weights.shape == (2, 4, 4)
    assert not tape.weights.requires_grad
    assert (tape.weights.triu() == 0).all()
    torch.testing.assert_close(tape.weights.sum(-1), torch.tensor([[0.0, 1, 1, 1]] * 2))
