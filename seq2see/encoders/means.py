"""The summary of places without a first or last one."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor


def masked_mean(
    states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
) -> Float[Tensor, "batch size"]:
    """The mean over real places; zeros where there is none."""
    count = mask.sum(1, keepdim=True).clamp(min=1)
    return (states * mask[..., None]).sum(1) / count
