"""Taking windows out of places at a cost that does not grow with their number, backwards too."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


class Ledger:
    """Windows of one source, (batch, places, size); the gradients of all of them are added up in one place.

    Autograd gives a plain gather a gradient as large as the source, at every step of a loop. Here each window adds its
    own part to one sum, which the source gets once, when all windows have been accounted for.
    """

    def __init__(self, source: Float[Tensor, "batch *heads places size"]):
        self.source = source
        self.sum: Tensor | None = None
        self._anchor: Tensor | None = None

    def take(self, numbers: Int[Tensor, "folded queries window"]) -> Float[Tensor, "folded queries window size"]:
        """What stands at those numbers of each row; `folded` is the batch, times heads where there are some."""
        flat = self.source.flatten(0, -3) if self.source.dim() > 3 else self.source
        index = numbers + torch.arange(len(flat), device=numbers.device)[:, None, None] * flat.shape[1]
        if not (torch.is_grad_enabled() and self.source.requires_grad):
            return flat.reshape(-1, flat.shape[-1])[index]
        if self._anchor is None:
            self._anchor = _Anchor.apply(self.source, self)
        taken: Tensor = _Take.apply(self._anchor, index, self)
        return taken


class _Anchor(torch.autograd.Function):
    """A number that every window depends on, so that its gradient is asked for after all of theirs."""

    @staticmethod
    def forward(ctx: Any, source: Tensor, ledger: Ledger) -> Tensor:
        ctx.ledger, ctx.shape = ledger, source.shape
        return source.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
        total, ctx.ledger.sum = ctx.ledger.sum, None
        return None if total is None else total.view(ctx.shape), None


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, index: Tensor, ledger: Ledger) -> Tensor:
        ctx.ledger = ledger
        ctx.save_for_backward(index)
        return ledger.source.detach().reshape(-1, ledger.source.shape[-1])[index]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        ledger: Ledger = ctx.ledger
        (index,) = ctx.saved_tensors
        if ledger.sum is None:
            ledger.sum = torch.zeros_like(ledger.source).reshape(-1, ledger.source.shape[-1])
        ledger.sum.index_add_(0, index.flatten(), grad.reshape(-1, grad.shape[-1]).to(ledger.sum.dtype))
        return grad.new_zeros(()), None, None
