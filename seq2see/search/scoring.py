"""What a search ranks by: log-probability per length, and how much of the input was looked at."""

from __future__ import annotations

from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2see.search.options import SearchOptions

OVERLOOKED = 1e-6
"""The least total a place counts as having got: one never looked at (oracle weights) costs much, not everything."""

Number = TypeVar("Number", float, Tensor)


def normalised(log_probability: Number, length: int, options: SearchOptions) -> Number:
    """log_probability / length ** penalty, the length counting `<eos>`."""
    return log_probability / float(length**options.length_penalty)


def best_attainable(log_probability: Tensor, options: SearchOptions) -> Tensor:
    """No continuation scores higher: every further symbol had probability 1, and the output grew as long as it may.

    The coverage penalty is at most 0, so it cannot lift a score above this either.
    """
    return normalised(log_probability, options.max_length, options)


def covered(total: Float[Tensor, "*rows places"], mask: Bool[Tensor, "*#rows places"]) -> Float[Tensor, "*rows"]:
    """sum_j log(min(sum_t a_tj, 1)) over real places: 0 where each got a whole look in total, below 0 elsewhere."""
    return (total.clamp(OVERLOOKED, 1.0).log() * mask).sum(-1)


def overlooked(totals: dict[str, Tensor], masks: dict[str, Tensor], options: SearchOptions) -> Tensor:
    """The coverage penalty of all inputs that are looked at, to be added to a score."""
    parts = [covered(total, masks[name]) for name, total in totals.items()]
    return options.coverage_penalty * torch.stack(parts).sum(0)
