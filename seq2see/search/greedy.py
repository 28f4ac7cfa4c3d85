"""The likeliest symbol, step after step."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor


def likeliest(
    log_probs: Float[Tensor, "inputs width symbols"], step: int, inputs: Int[Tensor, " inputs"]
) -> Int[Tensor, "inputs width"]:
    """The choice of a greedy walk."""
    return log_probs.argmax(-1)
