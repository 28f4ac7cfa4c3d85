"""Gradients of a loop over time, accumulated once for all steps instead of once per step.

In a loop autograd computes the gradient of whatever every step reads (a weight, the places of an input, earlier states)
step by step, each time as large as the whole. The classes here run the same forward computation, collect what each
step contributes, and compute the gradient in one large operation when the loop's backward pass reaches it:
`DeferredProduct` for products with weights, `DeferredGather` for windows and weighted means of places, `DeferredCache`
for states that later steps attend to.

The last two need to know which backward pass is running, which torch tells through a private function alone. Where a
version of torch lacks it they use plain operations: the same numbers and gradients, at autograd's usual cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear


class BackwardPass:
    """Tells a new backward pass from the previous one.

    A pass may end before every contribution was used: `torch.autograd.grad` with respect to the query alone never
    reaches the places. What such a pass collected must not leak into the next one.
    """

    def __init__(self) -> None:
        self._number = -1

    @staticmethod
    def is_known() -> bool:
        """Whether this version of torch numbers its backward passes."""
        return hasattr(torch._C, "_current_graph_task_id")

    def is_new(self) -> bool:
        """Whether the running pass differs from that of the last call."""
        number: int = torch._C._current_graph_task_id()
        before, self._number = self._number, number
        return number != before


# --- Products with weights


@runtime_checkable
class Product(Protocol):
    """Computes x W'. `key` identifies the weight, because a slice of a parameter is a new tensor at each access."""

    def __call__(
        self, x: Float[Tensor, "rows width"], weight: Float[Tensor, "out width"], key: str
    ) -> Float[Tensor, "rows out"]: ...


def plain_product(
    x: Float[Tensor, "rows width"], weight: Float[Tensor, "out width"], key: str
) -> Float[Tensor, "rows out"]:
    """x W' with autograd's own gradient: for single steps."""
    return linear(x, weight)


class DeferredProduct:
    """x_t W' for a loop of `steps` steps, with dW = sum_t dy_t x_t' as one large product after the loop.

    Autograd would add `steps` thin products to a gradient of the weight's size. Here each step adds one slice of a
    tensor of zeros to its product; the gradients of these slices arrive together, once all inputs x_t are known.
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
            self.weights[key] = autocast_to(weight.detach()), inputs, iter(slots.unbind(1))
        fixed, inputs, free = self.weights[key]
        inputs.append(x.detach())
        return torch.addmm(next(free), x, fixed.t())


def autocast_to(weight: Tensor) -> Tensor:
    """The weight at autocast's precision where that is enabled: converted once, not at every step."""
    device = weight.device.type
    return weight.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else weight


class _Slots(torch.autograd.Function):
    """Zeros (rows, steps, out) whose gradient becomes that of the weight."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, inputs: list[Tensor], rows: int, steps: int) -> Tensor:
        ctx.inputs = inputs
        ctx.working, ctx.dtype = autocast_to(weight[:0]).dtype, weight.dtype
        return weight.new_zeros(rows, steps, weight.shape[0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        steps = torch.stack(ctx.inputs, dim=1).flatten(0, 1).to(ctx.working)
        flat = grad[:, : len(ctx.inputs)].flatten(0, 1).to(ctx.working)
        return (flat.t() @ steps).to(ctx.dtype), None, None, None


# --- Windows and weighted means of places


class DeferredGather:
    """Windows and weighted means of one source (batch, places, size), with one gradient for all of them.

    Autograd gives a gather or a product a gradient of the source's size at every step of a loop, so that a window would
    cost as much as all places. Here each window keeps the gradient of its own rows and each mean keeps its weights; the
    source's gradient is computed once, when the backward pass has visited all of them. Under autocast the source is
    converted once, not at every step.
    """

    def __init__(self, source: Float[Tensor, "batch *heads places size"]):
        self.source = source
        self.windows: list[tuple[Tensor, Tensor]] = []
        self.means: list[tuple[Tensor, Tensor]] = []
        self._pass = BackwardPass()
        self._anchor: Tensor | None = None
        self._working: Tensor | None = None

    def take(self, numbers: Int[Tensor, "batch queries window"]) -> Float[Tensor, "batch queries window size"]:
        """The rows of the source at these numbers."""
        index = numbers + torch.arange(numbers.shape[0], device=numbers.device)[:, None, None] * self.source.shape[-2]
        if not self._defers():
            return self.source.reshape(-1, self.source.shape[-1])[index]
        rows: Tensor = _Take.apply(self.anchor, index, self)
        return rows

    def mean(self, weights: Float[Tensor, "batch queries places"]) -> Float[Tensor, "batch queries size"]:
        """sum_j weights_j source_j"""
        if not self._defers():
            return torch.bmm(weights.to(self.source.dtype), self.source)
        mean: Tensor = _Mean.apply(self.anchor, weights, self)
        return mean

    def _defers(self) -> bool:
        return torch.is_grad_enabled() and self.source.requires_grad and BackwardPass.is_known()

    @property
    def anchor(self) -> Tensor:
        """A scalar that every window and mean depends on: its gradient is computed after all of theirs."""
        if self._anchor is None:
            self._anchor = _Anchor.apply(self.source, self)
        return self._anchor

    def working(self) -> Float[Tensor, "batch places size"]:
        """The source without gradient, at the precision of products."""
        device = self.source.device.type
        if self._working is None:
            dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else self.source.dtype
            self._working = self.source.detach().to(dtype)
        return self._working

    def add_window(self, index: Int[Tensor, " rows"], grad: Float[Tensor, "rows size"]) -> None:
        """Keep the gradient of a window; index: its rows in the flattened source."""
        self._drop_leftovers()
        self.windows.append((index, grad))

    def add_mean(
        self, weights: Float[Tensor, "batch queries places"], grad: Float[Tensor, "batch queries size"]
    ) -> None:
        """Keep the weights and the gradient of a mean."""
        self._drop_leftovers()
        self.means.append((weights, grad))

    def _drop_leftovers(self) -> None:
        if self._pass.is_new():
            self.windows, self.means = [], []

    def gradient(self) -> Float[Tensor, "batch *heads places size"]:
        """The gradient of the source: the sum over all windows and means, which are then forgotten."""
        windows, means, self.windows, self.means = self.windows, self.means, [], []
        self._anchor = None  # the graph refers to this object, so this object must not keep the graph alive
        if means:
            weights, grads = (torch.cat(parts, dim=1) for parts in zip(*means, strict=True))
            total = torch.bmm(weights.transpose(1, 2).to(grads.dtype), grads).to(self.source.dtype)
        else:
            total = torch.zeros_like(self.source, memory_format=torch.contiguous_format)
        flat = total.view(-1, total.shape[-1])
        for index, grad in windows:
            flat.index_add_(0, index, grad)
        return total


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: Tensor, gather: DeferredGather) -> Tensor:
        ctx.gather = gather
        return source.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        gather: DeferredGather = ctx.gather
        return gather.gradient(), None


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, index: Tensor, gather: DeferredGather) -> Tensor:
        ctx.gather = gather
        ctx.save_for_backward(index)
        return gather.source.detach().reshape(-1, gather.source.shape[-1])[index]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        rows = grad.reshape(-1, grad.shape[-1]).to(ctx.gather.source.dtype)
        ctx.gather.add_window(index.flatten(), rows)
        return grad.new_zeros(()), None, None


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, weights: Tensor, gather: DeferredGather) -> Tensor:
        ctx.gather, ctx.dtype = gather, weights.dtype
        source = gather.working()
        used = weights.to(source.dtype)
        ctx.save_for_backward(used)
        return torch.bmm(used, source)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (used,) = ctx.saved_tensors
        gather: DeferredGather = ctx.gather
        gather.add_mean(used, grad)
        return grad.new_zeros(()), torch.bmm(grad, gather.working().transpose(1, 2)).to(ctx.dtype), None


def gather_places(
    source: Float[Tensor, "batch places"], numbers: Int[Tensor, "batch chosen"]
) -> Float[Tensor, "batch chosen"]:
    """`source.gather(1, numbers)`, which does not keep the whole source for the backward pass, as torch's own does."""
    chosen: Tensor = _Gather.apply(source, numbers)
    return chosen


class _Gather(torch.autograd.Function):
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


# --- States that later steps attend to


class DeferredCache:
    """Keys and values of earlier steps in a loop of at most `steps` steps, for attention to them.

    values: (batch, steps, size); keys: (batch, steps, key); weights: (batch, steps, steps), row j over the steps
    before j. A state passes through `append`, and what follows has to depend on what `append` returns: then the
    backward pass visits every later use of a state before the state itself.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.length = 0
        self._values, self._keys, self._weights = torch.empty(0), torch.empty(0), torch.empty(0)
        self._pass = BackwardPass()
        self._context_grads: Tensor | None = None
        self._key_grads: Tensor | None = None
        self._plain: list[tuple[Tensor, Tensor]] | None = None if BackwardPass.is_known() else []

    @property
    def weights(self) -> Float[Tensor, "batch steps steps"]:
        """The attention weights of each step, without gradient; the first row is zeros."""
        return self._weights

    def append(
        self, value: Float[Tensor, "batch size"], key: Float[Tensor, "batch key"]
    ) -> Float[Tensor, "batch size"]:
        """Add a value with its key; continue with the tensor that is returned."""
        if not self.length:
            self._values = value.new_zeros(len(value), self.steps, value.shape[1])
            self._keys = key.new_zeros(len(key), self.steps, key.shape[1])
            self._weights = value.new_zeros(len(value), self.steps, self.steps)
        self.length += 1
        if self._plain is not None:
            self._plain.append((value, key))
            return value
        passed: Tensor = _Append.apply(value, key, self, self.length - 1)
        return passed

    def keys(self, last: Float[Tensor, "batch size"]) -> Float[Tensor, "batch length key"]:
        """All keys so far; last: what `append` returned last."""
        if self._plain is not None:
            return torch.stack([key for _, key in self._plain], dim=1)
        keys: Tensor = _Keys.apply(last, self, self.length)
        return keys

    def mean(
        self, weights: Float[Tensor, "batch one length"], last: Float[Tensor, "batch size"]
    ) -> Float[Tensor, "batch one size"]:
        """sum_i weights_i value_i over all values so far."""
        if self._plain is not None:
            self._weights.data[:, self.length, : self.length] = weights.detach()[:, 0].to(self._weights.dtype)
            values = torch.stack([value for value, _ in self._plain], dim=1)
            return torch.bmm(weights.to(values.dtype), values)
        mean: Tensor = _CacheMean.apply(weights, last, self, self.length)
        return mean

    def _store(self, number: int, value: Tensor, key: Tensor) -> None:
        """Writes through `.data`: autograd has saved views of the earlier rows, which do not change."""
        self._values.data[:, number] = value
        self._keys.data[:, number] = key

    def _add_context_grad(self, number: int, grad: Float[Tensor, "batch size"]) -> None:
        self._drop_leftovers()
        if self._context_grads is None:
            self._context_grads = torch.zeros_like(self._values)
        self._context_grads[:, number] = grad

    def _add_key_grads(self, grad: Float[Tensor, "batch length key"]) -> None:
        self._drop_leftovers()
        if self._key_grads is None:
            self._key_grads = torch.zeros_like(self._keys)
        self._key_grads[:, : grad.shape[1]] += grad

    def _drop_leftovers(self) -> None:
        if self._pass.is_new():
            self._context_grads = self._key_grads = None

    def _gradients(self, number: int, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of a value and its key, after all later steps have added theirs; the first ends the pass."""
        self._drop_leftovers()
        grads, keys = self._context_grads, self._key_grads
        if grads is not None and number + 1 < self.steps:
            later = self._weights[:, number + 1 :, number].unsqueeze(1)
            grad = grad + torch.bmm(later, grads[:, number + 1 :]).squeeze(1)
        key = None if keys is None else keys[:, number].clone()
        if number == 0:
            self._context_grads = self._key_grads = None
        return grad, key


class _Append(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, key: Tensor, cache: DeferredCache, number: int) -> Tensor:
        ctx.cache, ctx.number = cache, number
        cache._store(number, value, key)
        return value.view_as(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        value, key = ctx.cache._gradients(ctx.number, grad)
        return value, key, None, None


class _Keys(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, last: Tensor, cache: DeferredCache, length: int) -> Tensor:
        ctx.cache = cache
        return cache._keys[:, :length]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, None]:
        ctx.cache._add_key_grads(grad)
        return None, None, None


class _CacheMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, last: Tensor, cache: DeferredCache, length: int) -> Tensor:
        ctx.cache, ctx.length, ctx.dtype = cache, length, weights.dtype
        used = weights.to(cache._values.dtype)
        cache._weights.data[:, length, :length] = used[:, 0]
        return torch.bmm(used, cache._values[:, :length])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        cache: DeferredCache = ctx.cache
        exact = grad.to(cache._values.dtype)
        cache._add_context_grad(ctx.length, exact[:, 0])
        back = torch.bmm(exact, cache._values[:, : ctx.length].transpose(1, 2))
        return back.to(ctx.dtype), None, None, None
