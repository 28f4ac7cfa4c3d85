"""Loops over time whose gradients are written by hand: single steps of a GRU and an LSTM, and a whole sequence.

Autograd records a dozen operations for every step of a cell. Here a step needs half of them, and the gradient of U is
one product for all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2see.deferred_gradients import autocast_to
from seq2see.packed_weights import fixed_product

State = tuple[Tensor, ...]
"""What a cell carries from step to step (`cells.CellState`)."""


class CellLoop(Protocol):
    """One step of a cell and its gradient; `saved` is whatever `backward` needs of `forward`."""

    def forward(self, inputs: Tensor, recurrent: Tensor, state: State) -> tuple[State, tuple[Tensor, ...]]:
        """The next state from W x + b (.., gates), U s (.., gates) and the state before."""

    def backward(
        self, grads: State, saved: tuple[Tensor, ...], inputs: Tensor, recurrent: Tensor
    ) -> tuple[Tensor, ...]:
        """Write the gradients of W x + b and U s, in whatever precision those tensors have, and return those of the
        state before, but for the part of U s."""


@dataclass
class GruLoop:
    """r, z = logistic(x + u); n = tanh(x_n + r * (u_n + bias)); s_t = n + z * (s - n)

    bias: None where u has it already.
    """

    bias: Tensor | None

    def forward(self, inputs: Tensor, recurrent: Tensor, state: State) -> tuple[State, tuple[Tensor, ...]]:
        (s,) = state
        size = s.shape[-1]
        first, last = inputs.split([2 * size, size], dim=-1)
        rest, inner = recurrent.split([2 * size, size], dim=-1)
        gates = (first + rest).sigmoid_()
        r, z = gates.chunk(2, dim=-1)
        inner = inner if self.bias is None else inner + self.bias
        n = torch.addcmul(last, r, inner).tanh_()
        return (torch.lerp(n, s, z),), (s, gates, inner, n)

    def backward(
        self, grads: State, saved: tuple[Tensor, ...], inputs: Tensor, recurrent: Tensor
    ) -> tuple[Tensor, ...]:
        (grad,), (s, gates, inner, n) = grads, saved
        size = s.shape[1]
        r, z = gates[:, :size], gates[:, size:]
        kept = grad * z
        new = torch.ops.aten.tanh_backward(grad - kept, n)
        from_gates = torch.empty_like(gates)
        torch.mul(new, inner, out=from_gates[:, :size])
        torch.mul(grad, s - n, out=from_gates[:, size:])
        inputs[:, : 2 * size] = torch.ops.aten.sigmoid_backward(from_gates, gates)
        inputs[:, 2 * size :] = new
        recurrent[:, : 2 * size] = inputs[:, : 2 * size]
        recurrent[:, 2 * size :] = new * r
        return (kept,)


@dataclass
class LstmLoop:
    """i, f, g, o = x + u; m_t = logistic(f) * m + logistic(i) * tanh(g); s_t = logistic(o) * tanh(m_t)"""

    def forward(self, inputs: Tensor, recurrent: Tensor, state: State) -> tuple[State, tuple[Tensor, ...]]:
        s, m = state
        total = inputs + recurrent
        first, g, o = total.split([2 * s.shape[-1], s.shape[-1], s.shape[-1]], dim=-1)
        gates, g, o = torch.sigmoid(first), torch.tanh(g), torch.sigmoid(o)
        i, f = gates.chunk(2, dim=-1)
        after = torch.addcmul(f * m, i, g)
        squashed = torch.tanh(after)
        return (o * squashed, after), (m, gates, g, o, squashed)

    def backward(
        self, grads: State, saved: tuple[Tensor, ...], inputs: Tensor, recurrent: Tensor
    ) -> tuple[Tensor, ...]:
        (grad, memory), (m, gates, g, o, squashed) = grads, saved
        size = m.shape[1]
        i, f = gates.chunk(2, dim=1)
        memory = memory + torch.ops.aten.tanh_backward(grad * o, squashed)
        inputs[:, : 2 * size] = torch.ops.aten.sigmoid_backward(torch.cat([memory * g, memory * m], dim=1), gates)
        inputs[:, 2 * size : 3 * size] = torch.ops.aten.tanh_backward(memory * i, g)
        inputs[:, 3 * size :] = torch.ops.aten.sigmoid_backward(grad * squashed, o)
        recurrent.copy_(inputs)
        return (torch.zeros_like(grad), memory * f)


def cell_loop(b_U: Tensor | None) -> CellLoop:
    """That of a GRU, which has a bias b_U, or of an LSTM, which has none."""
    return LstmLoop() if b_U is None else GruLoop(b_U)


def run_sequence(
    projected: Float[Tensor, "batch steps gates"],
    U: Float[Tensor, "gates size"],
    b_U: Float[Tensor, " size"] | None,
    start: State,
    dropped: Float[Tensor, "batch size"] | None = None,
) -> tuple[Float[Tensor, "batch steps size"], State]:
    """The outputs of all steps, and the last state; projected: W x_t + b; dropped: what s is multiplied with before
    U multiplies it, the same at all steps. States have the precision of U, whatever the steps are given in."""
    outputs, *last = _Sequence.apply(projected, U, b_U, dropped, *(part.to(U.dtype) for part in start))
    return outputs.transpose(0, 1), tuple(last)


class _Sequence(torch.autograd.Function):
    """Inside, tensors are (steps, batch, ...)."""

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, U: Tensor, b_U: Tensor | None, dropped: Tensor | None, *start: Tensor
    ) -> tuple[Tensor, ...]:
        weight, exact, cell = autocast_to(U), start[0].dtype, cell_loop(b_U)
        state: State = start
        multiply = fixed_product(weight)
        read, kept = list[Tensor](), list[Tensor]()
        outputs = list[Tensor]()
        for inputs in projected.transpose(0, 1).to(exact, memory_format=torch.contiguous_format):
            read.append(state[0] if dropped is None else state[0] * dropped)
            state, saved = cell.forward(inputs, multiply(read[-1]), state)
            outputs.append(state[0])
            kept += saved
        ctx.dtype = projected.dtype
        ctx.save_for_backward(weight, b_U, dropped, torch.cat(read).to(weight.dtype), *kept)
        last = (part.clone() for part in state)  # no output may be kept by its own graph
        return torch.stack(outputs), *last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_output: Tensor, *state: Tensor) -> tuple[Tensor | None, ...]:
        weight, b_U, dropped, read, *kept = ctx.saved_tensors
        cell, (steps, batch, _), each = cell_loop(b_U), by_output.shape, len(kept) // len(by_output)
        inputs, products = (
            by_output.new_empty(steps, batch, len(weight), dtype=to) for to in (ctx.dtype, weight.dtype)
        )
        multiply = fixed_product(weight.t())
        for step in reversed(range(steps)):
            state = (state[0] + by_output[step], *state[1:])
            saved = tuple(kept[step * each : (step + 1) * each])
            state = cell.backward(state, saved, inputs[step], products[step])
            before = multiply(products[step])
            state = (state[0] + (before if dropped is None else before * dropped), *state[1:])
        by_U = products.flatten(0, 1).t() @ read
        by_bias = None if b_U is None else products[:, :, -len(b_U) :].sum((0, 1), dtype=by_output.dtype)
        return inputs.transpose(0, 1), by_U.to(by_output.dtype), by_bias, None, *state
