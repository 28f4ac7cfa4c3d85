"""Choices: weights become a weighted mean of the places (soft), or one place (hard)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from seq2see.attention.normalisers import precise
from seq2see.registry import Registry
from seq2see.settings.base import NoSettings, Parts, Settings, Temperature, first_line
from seq2see.settings.plugins import construct, part_registry

LEAST = 1e-20


@dataclass
class Chosen:
    """shares: (batch, queries, candidates), how much of each candidate enters the context;

    place, log_prob: (batch, queries), of a hard choice the candidate and its log-probability (0 where there is none);
    by_score: whether the choice is learned from that log-probability alone, no gradient passing through the shares.
    """

    shares: Float[Tensor, "batch queries candidates"]
    place: Int[Tensor, "batch queries"] | None = None
    log_prob: Float[Tensor, "batch queries"] | None = None
    by_score: bool = False


choices: Registry[type[Choice]] = part_registry("choice", lambda: Choice, methods=["forward"])


class Choice(nn.Module):
    """Turns weights into the shares of the places in the context; a kind writes `forward`.

    The arguments of a kind's constructor are its settings. conditioned_on: what the model's probabilities depend on
    beside its input, where a place is drawn.
    """

    conditioned_on: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()

    @classmethod
    def build(cls, settings: Settings) -> Choice:
        """The choice of these settings."""
        choice: Choice = construct(cls, settings)
        return choice

    def forward(
        self, weights: Float[Tensor, "batch queries candidates"], *, generator: torch.Generator | None = None
    ) -> Chosen:
        raise NotImplementedError

    def equation(self, *, place: str = "h_j", weight: str = "a_tj") -> str:
        """For `show`; place, weight: as in the equations of the attention, 'w_ij' and 'a_tij' of words in sentences."""
        return f"c_t = {first_line(type(self)) or type(self).__name__}"


@choices.register("soft")
class Soft(Choice):
    """c_t = sum_j a_tj h_j"""

    Settings = NoSettings

    def forward(
        self, weights: Float[Tensor, "batch queries candidates"], *, generator: torch.Generator | None = None
    ) -> Chosen:
        return Chosen(weights)

    def equation(self, *, place: str = "h_j", weight: str = "a_tj") -> str:
        return f"c_t = sum_{_index(place)} {weight} {place}"


class GumbelSettings(Settings):
    """A draw learned straight through a relaxed one."""

    gumbel_temperature: Temperature = Field(1.0, description="of the relaxed draw")


class HardSettings(Settings):
    """One place, drawn by the weights."""

    parts = {"estimator": Parts({"score-function": NoSettings, "gumbel": GumbelSettings})}
    estimator: Literal["score-function", "gumbel"] = Field(
        "score-function", description="how the draw is learned; gumbel: straight through a relaxed draw"
    )


@choices.register("hard")
class Hard(Choice):
    """c_t = h_j, with j drawn from a_t while training and the likeliest one otherwise.

    No gradient passes through the draw: the score-function estimator weighs log a_tj by what came of the choice.
    """

    Settings = HardSettings
    conditioned_on = "the places chosen"
    learned = "learned by its score"

    @classmethod
    def build(cls, settings: Any) -> Hard:
        return StraightThrough(settings.gumbel_temperature) if isinstance(settings, GumbelSettings) else Hard()

    def forward(
        self, weights: Float[Tensor, "batch queries candidates"], *, generator: torch.Generator | None = None
    ) -> Chosen:
        weights = precise(weights)
        scores = weights.detach().log()
        if self.training:
            scores = scores + _gumbel(weights, generator)
        place = scores.argmax(-1)
        return Chosen(_one_hot(place, weights), place, _log_prob(weights, place), by_score=True)

    def equation(self, *, place: str = "h_j", weight: str = "a_tj") -> str:
        drawn = f"drawn by a_t while training ({self.learned}), the likeliest one otherwise"
        return f"c_t = {place}, {_index(place)} {drawn}"


class StraightThrough(Hard):
    """The same draw, with the gradient of the soft draw softmax((log a_t + g) / temperature), g Gumbel noise."""

    learned = "learned straight through"

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


def _index(place: str) -> str:
    """'ij' of 'w_ij'."""
    return place.partition("_")[2]


def _gumbel(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Gumbel noise of the shape and precision of `like`, which is single or better: coarser draws would tie."""
    draws = torch.rand(like.shape, generator=generator, device=like.device, dtype=like.dtype).clamp(min=LEAST)
    return -(-draws.log()).clamp(min=LEAST).log()


def _one_hot(place: Tensor, weights: Tensor) -> Tensor:
    """1 at the place; zeros in rows without a real candidate."""
    return torch.zeros_like(weights).scatter(-1, place[..., None], 1.0) * (weights.detach() > 0)


def _log_prob(weights: Tensor, place: Tensor) -> Tensor:
    chance = weights.gather(-1, place[..., None]).squeeze(-1)
    return torch.where(chance > 0, chance.clamp(min=LEAST).log(), torch.zeros_like(chance))
