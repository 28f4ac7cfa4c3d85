"""Where a symbol stands, told by turning queries and keys: what they agree on depends on how far apart they stand."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def rotated(vectors: Float[Tensor, "rows heads places part"], first: int) -> Float[Tensor, "rows heads places part"]:
    """Each pair of numbers (i, i + part / 2) at place j turned by the angle (first + j) w_i, w_i from 1 to 1 / 10,000.

    The product of a query at t and a key at j then depends on t - j alone (Su et al. 2021): both may be counted from
    anywhere, so that a text without end needs no large numbers.

    >>> q, k = torch.randn(2, 1, 1, 1, 4)
    >>> near, far = ((rotated(q, t + 3) * rotated(k, t)).sum() for t in (0, 500))
    >>> bool((near - far).abs() < 1e-4)
    True
    """
    places, half = vectors.shape[-2], vectors.shape[-1] // 2
    rates = torch.exp(torch.arange(half, device=vectors.device) * (-math.log(10_000.0) / half))
    angles = torch.arange(first, first + places, device=vectors.device)[:, None] * rates
    sine, cosine = angles.sin(), angles.cos()
    left, right = vectors.float().chunk(2, dim=-1)
    turned = torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)
    return turned.to(vectors.dtype)
