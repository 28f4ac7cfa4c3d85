"""What weights become: a weighted mean of the places (soft), or one of them (hard)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.attention.normalisers import precise
from seq2see.errors import UserError

LEAST = 1e-20


@dataclass
class Chosen:
    """shares: (batch, queries, candidates), how much of each candidate enters the context; place, log_prob: (batch,
    queries), for a hard choice the candidate and the log-probability of choosing it (0 where there was none);
    by_score: whether that log-probability is all the choice can be learned from."""

    shares: Float[Tensor, "batch queries candidates"]
    place: Int[Tensor, "batch queries"] | None = None
    log_prob: Float[Tensor, "batch queries"] | None = None
    by_score: bool = False


class Soft(nn.Module):
    """c_t = sum_j a_tj h_j"""

    def forward(
        self, weights: Float[Tensor, "batch queries candidates"], *, generator: torch.Generator | None = None
    ) -> Chosen:
        return Chosen(weights)


class Hard(nn.Module):
    """c_t = h_j, with j drawn from a_t while training and the likeliest one otherwise.

    No gradient passes through the draw: log a_tj is handed on, for the loss to weigh by what came of it.
    """

    def forward(
        self, weights: Float[Tensor, "batch queries candidates"], *, generator: torch.Generator | None = None
    ) -> Chosen:
        weights = precise(weights)
        scores = weights.detach().log()
        if self.training:
            scores = scores + _gumbel(weights, generator)
        place = scores.argmax(-1)
        return Chosen(_one_hot(place, weights), place, _log_prob(weights, place), by_score=True)


class StraightThrough(nn.Module):
    """The same draw, but backwards as if the soft draw softmax((log a_t + g) / temperature) had been used (Gumbel)."""

    def __init__(self, temperature: float = 1.0):
        super().__init__()
        self.temperature = temperature

    def forward(
        self, weights: Float[Tensor, "batch queries candidates"], *, generator: torch.Generator | None = None
    ) -> Chosen:
        weights = precise(weights)
        scores = weights.clamp(min=LEAST).log()
        if self.training:
            scores = scores + _gumbel(weights, generator)
        hidden = scores.masked_fill(weights.detach() == 0, torch.finfo(scores.dtype).min)
        place = hidden.argmax(-1)
        shares = _one_hot(place, weights)
        if self.training:
            soft = torch.softmax(hidden / self.temperature, dim=-1) * (weights.detach() > 0)
            shares = shares + soft - soft.detach()
        return Chosen(shares, place, _log_prob(weights, place))


def build_choice(name: str, *, estimator: str = "score-function", temperature: float = 1.0) -> nn.Module:
    """The choice of that name."""
    if name == "soft":
        return Soft()
    if name == "hard":
        return Hard() if estimator == "score-function" else StraightThrough(temperature)
    raise UserError(f"unknown choice '{name}'; allowed: soft, hard")


def _gumbel(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Noise of the precision of `like`, single at least: coarser draws tie, and ties go to the first place."""
    draws = torch.rand(like.shape, generator=generator, device=like.device, dtype=like.dtype).clamp(min=LEAST)
    return -(-draws.log()).clamp(min=LEAST).log()


def _one_hot(place: Tensor, weights: Tensor) -> Tensor:
    """1 at the place, but nothing at all where no candidate was real."""
    return torch.zeros_like(weights).scatter(-1, place[..., None], 1.0) * (weights.detach() > 0)


def _log_prob(weights: Tensor, place: Tensor) -> Tensor:
    chance = weights.gather(-1, place[..., None]).squeeze(-1)
    return torch.where(chance > 0, chance.clamp(min=LEAST).log(), torch.zeros_like(chance))
