"""Weights packed once for many predictions.

A prediction multiplies few rows with large weights, step by step. torch hands such a product to MKL, which takes the
weights as they lie; oneDNN wants them in a layout of its own, and is then up to four times as fast. Both compute in
single precision. What oneDNN offers for that is not a public function of torch: where a version lacks it, or a weight
is not a plain matrix of single precision on a CPU, the usual product is used.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

FEWEST = 64 * 64
"""Numbers in the smallest weight that is packed: below, calling costs more than multiplying."""
SAMPLED = 1009
"""Numbers of a weight that `refresh` compares; a prime, so that they come from all columns."""


class PackedWeights:
    """The packed weights of one model: a `Product`, which also adds biases. It takes the memory of the weights again.

    A weight that has changed since (by training, or by loading other weights) is packed anew; one that was changed
    behind autograd's back, through `.data`, from the next `refresh` on.
    """

    def __init__(self) -> None:
        self._packed: dict[tuple[int, torch.Size], tuple[Tensor, int, Tensor, Tensor]] = {}
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
        packed = None if torch.is_grad_enabled() else self._pack(weight)
        if packed is None or x.dtype != weight.dtype:
            return linear(x, weight, bias)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
        return product

    def refresh(self) -> None:
        """Forget weights whose numbers are others than when they were packed, as far as a sample of them shows."""
        with self._lock:
            for key, (weight, _, _, sample) in list(self._packed.items()):
                if not torch.equal(_sample(weight), sample):
                    del self._packed[key]

    def _pack(self, weight: Tensor) -> Tensor | None:
        """The packed weight; None where it cannot be packed."""
        key = (weight.data_ptr(), weight.shape)
        known = self._packed.get(key)
        if known is not None and known[1] == weight._version:
            return known[2]
        if not is_packable(weight):
            return None
        with self._lock:
            packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
            # with the weight, so that its address stays its own
            self._packed[key] = weight, weight._version, packed, _sample(weight).clone()
        return packed

    def __deepcopy__(self, memo: Any) -> PackedWeights:
        return PackedWeights()


def _sample(weight: Tensor) -> Tensor:
    """Some of its numbers, from all over it."""
    return weight.detach().view(-1)[:: max(weight.numel() // SAMPLED, 1)]


def is_packable(weight: Tensor) -> bool:
    """Whether oneDNN can pack this weight here."""
    return bool(
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.numel() >= FEWEST
        and weight.is_contiguous()
        and not weight.is_inference()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )
