"""a_t = normalise(e_t) over real places: exactly zero at padding, all zeros (never NaN) where no place is real."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def masked_softmax(
    energies: Float[Tensor, "batch queries places"], mask: Bool[Tensor, "batch places"]
) -> Float[Tensor, "batch queries places"]:
    """softmax over real places, in single precision whatever the energies' own.

    >>> masked_softmax(torch.zeros(1, 1, 3), torch.tensor([[True, True, False]]))
    tensor([[[0.5000, 0.5000, 0.0000]]])
    """
    real = mask[:, None]
    hidden = energies.float().masked_fill(~real, torch.finfo(torch.float32).min)
    weights: Tensor = torch.softmax(hidden, dim=-1) * real
    return weights.to(energies.dtype)
