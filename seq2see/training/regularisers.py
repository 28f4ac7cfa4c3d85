"""What looks themselves cost: terms of the loss that say how a decoder should look, whatever it writes."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2see.attention import Look
from seq2see.recipe.schema import LossSettings

LEAST = 1e-12


def look_terms(
    settings: LossSettings, look: Look, *, places: Bool[Tensor, "rows places"], steps: Bool[Tensor, "rows steps"]
) -> dict[str, Float[Tensor, ""]]:
    """Each term the recipe asks for, weighted, summed over the real steps (and places) of a batch."""
    terms: dict[str, Tensor] = {}
    if not (settings.doubly_stochastic or settings.entropy or settings.coverage):
        return terms
    weights = look.dense().view(*steps.shape, -1) * steps[..., None]
    if settings.doubly_stochastic:
        terms["doubly_stochastic"] = settings.doubly_stochastic * doubly_stochastic(weights, places, steps)
    if settings.entropy:
        terms["entropy"] = settings.entropy * entropy(weights).sum()
    if settings.coverage:
        terms["coverage"] = settings.coverage * coverage(weights)
    return terms


def alignment(
    weights: Float[Tensor, "rows steps places"], truth: Float[Tensor, "rows steps places"]
) -> Float[Tensor, ""]:
    """-sum_t sum_j a_true_tj log a_tj: looks that should be known ones; a step without a link has no a_true."""
    return -(truth * weights.clamp(min=LEAST).log()).sum()


def doubly_stochastic(
    weights: Float[Tensor, "rows steps places"], places: Bool[Tensor, "rows places"], steps: Bool[Tensor, "rows steps"]
) -> Float[Tensor, ""]:
    """sum_j (T / M - sum_t a_tj) ** 2: over an output of T steps each of the M places gets the same in all.

    With as many steps as places this is the (1 - sum_t a_tj) ** 2 of Xu et al. (2015).
    """
    count = places.sum(1, keepdim=True).clamp(min=1)
    wanted = steps.sum(1, keepdim=True) / count
    return ((wanted - weights.sum(1)).square() * places).sum()


def entropy(weights: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows"]:
    """-sum_j a_j log a_j of each look; a place without weight adds nothing."""
    return -(weights * weights.clamp(min=LEAST).log()).sum(-1)


def coverage(weights: Float[Tensor, "rows steps places"]) -> Float[Tensor, ""]:
    """sum_t sum_j min(a_tj, sum_{i<t} a_ij): looking again where was looked before (See, Liu and Manning 2017)."""
    before = weights.cumsum(1) - weights
    return torch.minimum(weights, before).sum()
