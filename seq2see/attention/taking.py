"""Taking windows out of places at a cost that does not grow with their number, backwards too."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


class Ledger:
    """Windows of one source, (batch, places, size); the gradients of all of them are added up in one place.

    Autograd gives a plain gather a gradient as large as the source, at every step of a loop. Here each window only puts
    down its own part; the source gets their sum once, when all windows have been accounted for.
    """

    def __init__(self, source: Float[Tensor, "batch *heads places size"]):
        self.source = source
        self.anchor: Tensor | None = None
        self.parts: list[tuple[Tensor, Tensor]] = []

    def take(self, numbers: Int[Tensor, "batch queries window"]) -> Float[Tensor, "batch queries window size"]:
        """What stands at those numbers of each row."""
        index = numbers + torch.arange(len(numbers), device=numbers.device)[:, None, None] * self.source.shape[-2]
        if not (torch.is_grad_enabled() and self.source.requires_grad):
            return self.source.reshape(-1, self.source.shape[-1])[index]
        if self.anchor is None:
            self.anchor = _Anchor.apply(self.source, self)
        taken: Tensor = _Take.apply(self.anchor, index, self)
        return taken


class _Anchor(torch.autograd.Function):
    """A number that every window depends on, so that its gradient is asked for after all of theirs."""

    @staticmethod
    def forward(ctx: Any, source: Tensor, ledger: Ledger) -> Tensor:
        ctx.ledger = ledger
        return source.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        ledger: Ledger = ctx.ledger
        parts, ledger.parts = ledger.parts, []
        total = torch.zeros_like(ledger.source, memory_format=torch.contiguous_format)
        flat = total.view(-1, total.shape[-1])
        for index, part in parts:
            flat.index_add_(0, index, part)
        return total, None


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, index: Tensor, ledger: Ledger) -> Tensor:
        ctx.ledger = ledger
        ctx.save_for_backward(index)
        return ledger.source.detach().reshape(-1, ledger.source.shape[-1])[index]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        part = grad.reshape(-1, grad.shape[-1]).to(ctx.ledger.source.dtype)
        ctx.ledger.parts.append((index.flatten(), part))
        return grad.new_zeros(()), None, None
