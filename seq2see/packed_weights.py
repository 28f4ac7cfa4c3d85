"""Weights packed once for many products: those of all predictions, or those of one loop over time in training.

Both multiply few rows with large weights, step by step. torch hands such a product to MKL, which takes the weights as
they lie; oneDNN wants them in a layout of its own, and is then up to four times as fast (with 80 rows 1.2 to 1.3
times). Both compute in single precision. What oneDNN offers for that is not a public function of torch: where a version
lacks it, or a weight is not a plain matrix of single precision on a CPU, the usual product is used.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

FEWEST = 64 * 64
"""Numbers in the smallest weight that is packed: below, calling costs more than multiplying."""
LARGE = 1 << 20
"""Numbers in the smallest weight that is rounded: below, reading takes no time."""
EPSILON = 1e-6
LARGEST_TABLE = 1 << 25
"""Numbers in the largest table of products that is kept, 128 MB."""
SAMPLED = 32
"""Rows and columns of a weight whose numbers `refresh` compares."""

Multiplier = Callable[[Float[Tensor, "*rows width"]], Float[Tensor, "*rows out"]]


def product(x: Float[Tensor, "rows width"], weight: Float[Tensor, "out width"]) -> Float[Tensor, "rows out"]:
    """x weight', without a gradient."""
    if is_packable(weight):
        return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")  # type: ignore[no-any-return]
    return x @ weight.t()


def fixed_product(
    weight: Float[Tensor, "out width"], bias: Float[Tensor, " out"] | None = None
) -> Callable[[Float[Tensor, "rows width"]], Tensor]:
    """x -> x weight' + bias, for many x while the weight does not change; without a gradient. x and the product may
    have a higher precision than the weight."""
    if is_packable(weight):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return lambda x: linear(x.to(weight.dtype), weight, bias).to(x.dtype)


@dataclass
class Rounded:
    """A weight in half precision, packed; error: |x (W - rounded W)'| is at most error |x|, for every row of W."""

    weight: torch.ScriptObject
    error: float

    def linear(self, x: Float[Tensor, "rows width"], bias: Float[Tensor, " out"]) -> Float[Tensor, "rows out"]:
        """x weight' + bias, computed in single precision."""
        product: Tensor = torch.ops.quantized.linear_dynamic_fp16.default(x, self.weight)
        return product.add_(bias)


@dataclass
class _Packed:
    """A packed weight, and what it was made of: the weights, so that their addresses stay their own, their versions,
    and some of their numbers."""

    weight: Any
    sources: Sequence[Tensor]
    versions: list[int]
    samples: list[Tensor]


class PackedWeights:
    """The packed weights of one model: a `Product`, which also adds biases. It takes the memory of the weights again.

    A weight that has changed since (by training, or by loading other weights) is packed anew; one that was changed
    behind autograd's back, through `.data`, from the next `refresh` on, as far as a sample of its numbers shows.
    """

    def __init__(self) -> None:
        self._packed: dict[Any, _Packed] = {}
        self._lock = threading.Lock()

    def __call__(self, x: Float[Tensor, "rows width"], weight: Float[Tensor, "out width"], key: str = "") -> Tensor:
        return self.linear(x, weight)

    def linear(
        self,
        x: Float[Tensor, "*rows width"],
        weight: Float[Tensor, "out width"],
        bias: Float[Tensor, " out"] | None = None,
    ) -> Float[Tensor, "*rows out"]:
        """x weight' + bias."""
        return self._multiply(x, (weight,), bias)

    def joint(
        self,
        x: Float[Tensor, "*rows width"],
        weights: Sequence[Float[Tensor, "_ width"]],
        bias: Float[Tensor, " out"] | None = None,
    ) -> Float[Tensor, "*rows out"]:
        """x [W_1; W_2; ..]' + bias: the products of several weights with the same vectors, as one."""
        return self._multiply(x, weights, bias)

    def multiplier(
        self, weights: Sequence[Float[Tensor, "_ width"]], bias: Float[Tensor, " out"] | None = None
    ) -> Multiplier:
        """x -> x [W_1; W_2; ..]' + bias for many x of single precision, with the weights as they are now."""
        packed = None if torch.is_grad_enabled() else self._pack(weights)
        if packed is None:
            joined = _joined(weights)
            return lambda x: linear(x, joined, bias)
        multiply = torch.ops.mkldnn._linear_pointwise.default
        return lambda x: multiply(x, packed, bias, "none", [], "")

    def refresh(self) -> None:
        """At the start of a prediction: forget weights whose numbers are others than when they were packed, as far as a
        sample of them shows."""
        with self._lock:
            for key, packed in list(self._packed.items()):
                if not all(map(torch.equal, map(_sample, packed.sources), packed.samples)):
                    del self._packed[key]

    def _multiply(self, x: Tensor, weights: Sequence[Tensor], bias: Tensor | None) -> Tensor:
        packed = None if torch.is_grad_enabled() else self._pack(weights)
        if packed is None or x.dtype != weights[0].dtype:
            return linear(x, _joined(weights), bias)
        product: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, packed, bias, "none", [], "")
        return product

    def rounded(self, weight: Float[Tensor, "out width"]) -> Rounded | None:
        """The weight in half precision, half as much to read; None where that would not be faster, or not possible."""
        if torch.is_grad_enabled() or weight.numel() < LARGE:
            return None
        rounded: Rounded | None = self._kept("half", (weight,), lambda: _round(weight))
        return rounded

    def table(
        self,
        vectors: Float[Tensor, "symbols width"],
        weights: Sequence[Float[Tensor, "_ width"]],
        biases: Sequence[Float[Tensor, " _"]],
    ) -> Float[Tensor, "symbols out"] | None:
        """vectors [W_1; W_2; ..]' + [b_1; b_2; ..], to be looked up instead of computed; None where the table would be
        too large."""
        if torch.is_grad_enabled() or len(vectors) * sum(map(len, weights)) > LARGEST_TABLE:
            return None
        sources = [vectors, *weights, *(bias[None] for bias in biases)]
        table: Tensor | None = self._kept(
            "table", sources, lambda: linear(vectors, torch.cat(list(weights)), torch.cat(list(biases)))
        )
        return table

    def stacked(self, weights: Sequence[Float[Tensor, "out width"]]) -> Float[Tensor, "weights width out"]:
        """The transposes of weights of one shape, for a product of each with its own vectors."""

        def stack() -> Tensor:
            return torch.stack([weight.detach().t() for weight in weights])

        kept: Tensor | None = self._kept("stacked", weights, stack)
        return stack() if kept is None else kept

    def _pack(self, weights: Sequence[Tensor]) -> Tensor | None:
        """The packed weights; None where they cannot be packed."""
        packed: Tensor | None = self._kept("packed", weights, lambda: _reorder(weights))
        return packed

    def _kept(self, way: str, weights: Sequence[Tensor], make: Callable[[], Any]) -> Any:
        """What `make` gives, made once for these weights; None where it is not possible."""
        key = (way, *[(weight.data_ptr(), weight.shape, weight.stride()) for weight in weights])
        known = self._packed.get(key)
        if known is not None and known.versions == [weight._version for weight in weights]:
            return known.weight
        if any(weight.is_inference() for weight in weights):
            return None
        with self._lock:
            packed = make()
            if packed is not None:
                samples = [_sample(weight).clone() for weight in weights]
                self._packed[key] = _Packed(packed, weights, [weight._version for weight in weights], samples)
        return packed

    def __deepcopy__(self, memo: Any) -> PackedWeights:
        return PackedWeights()


def _reorder(weights: Sequence[Tensor]) -> Tensor | None:
    if not all(map(is_packable, weights)):
        return None
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(_joined(weights).detach())
    return packed


def _round(weight: Tensor) -> Rounded | None:
    if not is_packable(weight) or not hasattr(torch.ops.quantized, "linear_dynamic_fp16"):
        return None
    if torch.backends.quantized.engine not in ("x86", "fbgemm"):
        return None
    weight = weight.detach()
    difference = (weight.half().float() - weight).norm(dim=1)
    # twice the error of rounding to the nearest, and that of sums in single precision
    error = float((2 * difference + EPSILON * weight.norm(dim=1)).max())
    return Rounded(torch.ops.quantized.linear_prepack_fp16(weight, None), error) if math.isfinite(error) else None


def _joined(weights: Sequence[Tensor]) -> Tensor:
    return weights[0].contiguous() if len(weights) == 1 else torch.cat(list(weights))


def _sample(weight: Tensor) -> Tensor:
    """Some of its numbers, from all over it."""
    rows, columns = weight.shape
    return weight.detach()[:: -(-rows // SAMPLED), :: -(-columns // SAMPLED)]


def is_packable(weight: Tensor) -> bool:
    """Whether oneDNN can pack this weight here."""
    return bool(
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.dim() == 2
        and weight.numel() >= FEWEST
        and not weight.is_inference()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )
