"""Neighbours joined: half as many states, each twice as wide."""

from __future__ import annotations

import torch  # noqa: F401 - for the example
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad


def pairs(
    states: Float[Tensor, "batch length size"], mask: Bool[Tensor, "batch length"]
) -> tuple[Float[Tensor, "batch half twice"], Bool[Tensor, "batch half"]]:
    """([x_1; x_2], [x_3; x_4], ..), real where the first one is; a last one alone has zeros beside it.

    Masked states count as zeros, so that a row does not depend on how much padding its batch gives it.

    >>> pairs(torch.arange(3.0).view(1, 3, 1), torch.ones(1, 3, dtype=torch.bool))[0]
    tensor([[[0., 1.],
             [2., 0.]]])
    """
    odd = states.shape[1] % 2
    states, mask = pad(states * mask[..., None], (0, 0, 0, odd)), pad(mask, (0, odd))
    return states.unflatten(1, (-1, 2)).flatten(2), mask[:, ::2]
