"""States written down one by one, and looks back at those written so far: memory and work that autograd would not save.

Joining the states of a loop anew at every step keeps M copies of them, and hands each of their gradients on by itself:
M * M / 2 additions. Here all steps look at one buffer, which grows, and a state gets the gradients of all later looks
in one product, when they have all been accounted for.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2see.attention.passes import Pass


class Tape:
    """What one loop over at most `steps` steps has written: values (batch, steps, size) with keys, and how each step
    looked: weights (batch, steps, steps), row j over the steps before j.

    What is written passes through `write`, and what follows has to depend on what `write` gives back: then every later
    look settles its gradient before the states it looked at are asked for theirs.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.written = 0
        self._values, self._keys, self._weights = _nothing(), _nothing(), _nothing()
        self._pass = Pass()
        self._context_grads: Tensor | None = None
        self._key_grads: Tensor | None = None

    @property
    def weights(self) -> Float[Tensor, "batch steps steps"]:
        """How each step looked; without gradient. Zeros in the first row: nothing lies before it."""
        return self._weights

    def write(self, value: Float[Tensor, "batch size"], key: Float[Tensor, "batch key"]) -> Float[Tensor, "batch size"]:
        """Put down a value with its key; go on with what comes back."""
        if not self.written:
            self._values = value.new_zeros(len(value), self.steps, value.shape[1])
            self._keys = key.new_zeros(len(key), self.steps, key.shape[1])
            self._weights = value.new_zeros(len(value), self.steps, self.steps)
        passed: Tensor = _Write.apply(value, key, self, self.written)
        self.written += 1
        return passed

    def keys(self, last: Float[Tensor, "batch size"]) -> Float[Tensor, "batch written key"]:
        """All keys so far; `last`: what `write` gave back last."""
        seen: Tensor = _Keys.apply(last, self, self.written)
        return seen

    def mix(
        self, shares: Float[Tensor, "batch one written"], last: Float[Tensor, "batch size"]
    ) -> Float[Tensor, "batch one size"]:
        """sum_i shares_i value_i over all values so far."""
        mean: Tensor = _Mix.apply(shares, last, self, self.written)
        return mean

    def _put(self, number: int, value: Tensor, key: Tensor) -> None:
        """Through `.data`: views of what stands before `number` are saved for the way back, and stay as they are."""
        self._values.data[:, number] = value
        self._keys.data[:, number] = key

    def _put_context_grad(self, number: int, grad: Float[Tensor, "batch size"]) -> None:
        """Account for the look of that step."""
        self._open()
        if self._context_grads is None:
            self._context_grads = torch.zeros_like(self._values)
        self._context_grads[:, number] = grad

    def _put_key_grads(self, grad: Float[Tensor, "batch seen key"]) -> None:
        """Account for the keys that a step has seen."""
        self._open()
        if self._key_grads is None:
            self._key_grads = torch.zeros_like(self._keys)
        self._key_grads[:, : grad.shape[1]] += grad

    def _open(self) -> None:
        """What a way back that ended early has put down belongs to no later one."""
        if self._pass.new():
            self._context_grads = self._key_grads = None

    def _settled(self, number: int, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of a value and its key, all later looks having put down their parts; the first one ends it."""
        self._open()
        grads, keys = self._context_grads, self._key_grads
        if grads is not None and number + 1 < self.steps:
            later = self._weights[:, number + 1 :, number].unsqueeze(1)
            grad = grad + torch.bmm(later, grads[:, number + 1 :]).squeeze(1)
        key = None if keys is None else keys[:, number].clone()
        if number == 0:
            self._context_grads = self._key_grads = None
        return grad, key


def _nothing() -> Tensor:
    return torch.empty(0)


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, key: Tensor, tape: Tape, number: int) -> Tensor:
        ctx.tape, ctx.number = tape, number
        tape._put(number, value, key)
        return value.view_as(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        value, key = ctx.tape._settled(ctx.number, grad)
        return value, key, None, None


class _Keys(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, last: Tensor, tape: Tape, written: int) -> Tensor:
        ctx.tape = tape
        return tape._keys[:, :written]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, None]:
        ctx.tape._put_key_grads(grad)
        return None, None, None


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shares: Tensor, last: Tensor, tape: Tape, written: int) -> Tensor:
        ctx.tape, ctx.written, ctx.dtype = tape, written, shares.dtype
        used = shares.to(tape._values.dtype)
        tape._weights.data[:, written, :written] = used[:, 0]
        return torch.bmm(used, tape._values[:, :written])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        tape: Tape = ctx.tape
        exact = grad.to(tape._values.dtype)
        tape._put_context_grad(ctx.written, exact[:, 0])
        back = torch.bmm(exact, tape._values[:, : ctx.written].transpose(1, 2))
        return back.to(ctx.dtype), None, None, None
