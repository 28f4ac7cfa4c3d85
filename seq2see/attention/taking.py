"""Taking windows out of places at a cost that does not grow with their number, backwards too."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2see.attention.passes import Pass


class Ledger:
    """Windows and weighted means of one source, (batch, places, size); their gradients are added up in one place.

    Autograd gives a plain gather, or a product, a gradient as large as the source at every step of a loop. Here each
    window puts down its own part, and of each mean the weights are kept; the source gets the sum once, when all have
    been accounted for. At reduced precision it is converted once, not at every step. A way back that ends before the
    source is asked for its gradient leaves parts behind; the next one drops them.
    """

    def __init__(self, source: Float[Tensor, "batch *heads places size"]):
        self.source = source
        self.parts: list[tuple[Tensor, Tensor]] = []
        self.mixed: list[tuple[Tensor, Tensor]] = []
        self._pass = Pass()
        self._anchor: Tensor | None = None
        self._working: Tensor | None = None

    def take(self, numbers: Int[Tensor, "batch queries window"]) -> Float[Tensor, "batch queries window size"]:
        """What stands at those numbers of each row."""
        index = numbers + torch.arange(len(numbers), device=numbers.device)[:, None, None] * self.source.shape[-2]
        if not (torch.is_grad_enabled() and self.source.requires_grad):
            return self.source.reshape(-1, self.source.shape[-1])[index]
        taken: Tensor = _Take.apply(self.anchor, index, self)
        return taken

    def mix(self, shares: Float[Tensor, "batch queries places"]) -> Float[Tensor, "batch queries size"]:
        """sum_j shares_j source_j"""
        if not (torch.is_grad_enabled() and self.source.requires_grad):
            return torch.bmm(shares.to(self.source.dtype), self.source)
        mean: Tensor = _Mix.apply(self.anchor, shares, self)
        return mean

    @property
    def anchor(self) -> Tensor:
        if self._anchor is None:
            self._anchor = _Anchor.apply(self.source, self)
        return self._anchor

    def working(self) -> Float[Tensor, "batch places size"]:
        """The source without its gradient, at the precision products are taken in."""
        kind = self.source.device.type
        if self._working is None:
            wanted = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.source.dtype
            self._working = self.source.detach().to(wanted)
        return self._working

    def put_part(self, index: Int[Tensor, " taken"], grad: Float[Tensor, "taken size"]) -> None:
        """Account for a window: the gradient of what was taken at those numbers of all rows together."""
        self._open()
        self.parts.append((index, grad))

    def put_mixed(
        self, shares: Float[Tensor, "batch queries places"], grad: Float[Tensor, "batch queries size"]
    ) -> None:
        """Account for a mean of those shares."""
        self._open()
        self.mixed.append((shares, grad))

    def _open(self) -> None:
        if self._pass.new():
            self.parts, self.mixed = [], []

    def settle(self) -> Float[Tensor, "batch *heads places size"]:
        """The gradient of the source: the sum of what windows and means have put down, which is then forgotten."""
        parts, mixed, self.parts, self.mixed = self.parts, self.mixed, [], []
        self._anchor = None  # the graph holds the ledger, so the ledger must not go on holding the graph
        if mixed:
            shares, grads = (torch.cat(all_of, dim=1) for all_of in zip(*mixed, strict=True))
            total = torch.bmm(shares.transpose(1, 2).to(grads.dtype), grads).to(self.source.dtype)
        else:
            total = torch.zeros_like(self.source, memory_format=torch.contiguous_format)
        flat = total.view(-1, total.shape[-1])
        for index, part in parts:
            flat.index_add_(0, index, part)
        return total


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
        return ledger.settle(), None


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
        ctx.ledger.put_part(index.flatten(), part)
        return grad.new_zeros(()), None, None


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, shares: Tensor, ledger: Ledger) -> Tensor:
        ctx.ledger, ctx.dtype = ledger, shares.dtype
        source = ledger.working()
        used = shares.to(source.dtype)
        ctx.save_for_backward(used)
        return torch.bmm(used, source)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (used,) = ctx.saved_tensors
        ledger: Ledger = ctx.ledger
        ledger.put_mixed(used, grad)
        return grad.new_zeros(()), torch.bmm(grad, ledger.working().transpose(1, 2)).to(ctx.dtype), None


def pick(source: Float[Tensor, "batch places"], numbers: Int[Tensor, "batch picked"]) -> Float[Tensor, "batch picked"]:
    """What stands at those numbers of each row; torch's own gather would keep the whole source for the way back."""
    picked: Tensor = _Pick.apply(source, numbers)
    return picked


class _Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: Tensor, numbers: Tensor) -> Tensor:
        ctx.shape = source.shape
        ctx.save_for_backward(numbers)
        return source.gather(1, numbers)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (numbers,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).scatter_add_(1, numbers, grad), None
