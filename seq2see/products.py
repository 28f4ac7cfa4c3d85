"""Products with the weights of a loop over time: W's gradient is taken once for all steps, not once per step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear


@runtime_checkable
class Product(Protocol):
    """x W', by whatever way; `key` names the weight (a slice of a parameter is a new tensor each time it is taken)."""

    def __call__(
        self, x: Float[Tensor, "rows width"], weight: Float[Tensor, "out width"], key: str
    ) -> Float[Tensor, "rows out"]: ...


def plain_product(
    x: Float[Tensor, "rows width"], weight: Float[Tensor, "out width"], key: str
) -> Float[Tensor, "rows out"]:
    return linear(x, weight)


class HoistedProduct:
    """The same products for a loop of `steps`, with dW = sum_t dy_t x_t' as one large product after the loop.

    In a loop autograd takes the gradient of a weight step by step: many thin products, each read and added over the
    whole matrix. Here each step adds a slot of zeros; the slots' gradients arrive together, when the loop's inputs are
    all known.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.weights: dict[str, tuple[Tensor, list[Tensor], Iterator[Tensor]]] = {}

    def __call__(
        self, x: Float[Tensor, "rows width"], weight: Float[Tensor, "out width"], key: str
    ) -> Float[Tensor, "rows out"]:
        if key not in self.weights:
            inputs: list[Tensor] = []
            slots: Tensor = _Slots.apply(weight, inputs, len(x), self.steps)
            self.weights[key] = _at_working_precision(weight.detach()), inputs, iter(slots.unbind(1))
        fixed, inputs, free = self.weights[key]
        inputs.append(x.detach())
        return torch.addmm(next(free), x, fixed.t())


def _at_working_precision(weight: Tensor) -> Tensor:
    """Under autocast the loop's weight is converted once here, not once per step."""
    kind = weight.device.type
    return weight.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else weight


class _Slots(torch.autograd.Function):
    """Zeros (rows, steps, out) whose gradient becomes the weight's."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, inputs: list[Tensor], rows: int, steps: int) -> Tensor:
        ctx.inputs = inputs
        ctx.working, ctx.dtype = _at_working_precision(weight[:0]).dtype, weight.dtype
        return weight.new_zeros(rows, steps, weight.shape[0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        steps = torch.stack(ctx.inputs, dim=1).flatten(0, 1).to(ctx.working)
        flat = grad[:, : len(ctx.inputs)].flatten(0, 1).to(ctx.working)
        return (flat.t() @ steps).to(ctx.dtype), None, None, None
