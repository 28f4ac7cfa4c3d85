"""A row read twice, under two dropouts, should be answered alike (R-Drop, Liang et al. 2021)."""

from __future__ import annotations

import torch  # noqa: F401 - for the example
from jaxtyping import Bool, Float
from torch import Tensor

FLOOR = -1e4
"""Of a log-probability: what is impossible in both readings must not become not-a-number."""


def difference(
    log_probs: Float[Tensor, "rows *steps symbols"], mask: Bool[Tensor, " rows *steps"]
) -> Float[Tensor, ""]:
    """sum (KL(p || q) + KL(q || p)) / 2 over real steps, p and q being what the two readings of each row say: the first
    half of the rows holds the one, the second half the other.

    >>> alike = torch.log_softmax(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), -1)
    >>> difference(alike, torch.ones(2, dtype=torch.bool))
    tensor(0.)
    """
    p, q = log_probs.clamp(min=FLOOR).chunk(2)
    apart = ((p.exp() - q.exp()) * (p - q)).sum(-1)
    return apart[mask[: len(p)]].sum() / 2
