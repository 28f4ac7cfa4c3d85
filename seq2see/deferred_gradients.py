"""Gradients of a loop over time taken once for all steps: products with weights, windows of places, growing tapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

# ---------------- Which way back is under way


class BackwardPass:
    """Tells a new backward pass from the one before.

    A pass may end before all parts have been settled: torch.autograd.grad for the query alone never asks for the
    places. What it has put down until then belongs to no later pass.
    """

    def __init__(self) -> None:
        self._number = -1

    def new(self) -> bool:
        """Whether the pass under way is another than at the last call: torch gives each a number of its own."""
        number: int = torch._C._current_graph_task_id()
        before, self._number = self._number, number
        return number != before


# ---------------- Products with the weights of a loop over time


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


class DeferredProduct:
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


# ---------------- Taking windows out of places at a cost that does not grow with their number, backwards too


class DeferredGather:
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
        self._pass = BackwardPass()
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
    def forward(ctx: Any, source: Tensor, ledger: DeferredGather) -> Tensor:
        ctx.ledger = ledger
        return source.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        ledger: DeferredGather = ctx.ledger
        return ledger.settle(), None


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, index: Tensor, ledger: DeferredGather) -> Tensor:
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
    def forward(ctx: Any, anchor: Tensor, shares: Tensor, ledger: DeferredGather) -> Tensor:
        ctx.ledger, ctx.dtype = ledger, shares.dtype
        source = ledger.working()
        used = shares.to(source.dtype)
        ctx.save_for_backward(used)
        return torch.bmm(used, source)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (used,) = ctx.saved_tensors
        ledger: DeferredGather = ctx.ledger
        ledger.put_mixed(used, grad)
        return grad.new_zeros(()), torch.bmm(grad, ledger.working().transpose(1, 2)).to(ctx.dtype), None


def gather_places(
    source: Float[Tensor, "batch places"], numbers: Int[Tensor, "batch picked"]
) -> Float[Tensor, "batch picked"]:
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


# ---------------- States written down one by one, and looks back at those written so far


class DeferredCache:
    """What one loop over at most `steps` steps has written: values (batch, steps, size) with keys, and how each step
    looked: weights (batch, steps, steps), row j over the steps before j.

    What is written passes through `write`, and what follows has to depend on what `write` gives back: then every later
    look settles its gradient before the states it looked at are asked for theirs.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.written = 0
        self._values, self._keys, self._weights = _nothing(), _nothing(), _nothing()
        self._pass = BackwardPass()
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
        mean: Tensor = _TapeMix.apply(shares, last, self, self.written)
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
    def forward(ctx: Any, value: Tensor, key: Tensor, tape: DeferredCache, number: int) -> Tensor:
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
    def forward(ctx: Any, last: Tensor, tape: DeferredCache, written: int) -> Tensor:
        ctx.tape = tape
        return tape._keys[:, :written]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, None]:
        ctx.tape._put_key_grads(grad)
        return None, None, None


class _TapeMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shares: Tensor, last: Tensor, tape: DeferredCache, written: int) -> Tensor:
        ctx.tape, ctx.written, ctx.dtype = tape, written, shares.dtype
        used = shares.to(tape._values.dtype)
        tape._weights.data[:, written, :written] = used[:, 0]
        return torch.bmm(used, tape._values[:, :written])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        tape: DeferredCache = ctx.tape
        exact = grad.to(tape._values.dtype)
        tape._put_context_grad(ctx.written, exact[:, 0])
        back = torch.bmm(exact, tape._values[:, : ctx.written].transpose(1, 2))
        return back.to(ctx.dtype), None, None, None
