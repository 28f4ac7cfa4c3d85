"""The input of a Transformer: vectors or embeddings with positional encodings."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.dropout import dropout
from seq2see.embeddings import Embedding, OneHot, normal
from seq2see.errors import UserError

ADDED = ("sinusoidal", "learned")
"""Positional encodings that are added to the input; rotary ones rotate queries and keys in every layer instead."""


class PositionalInput(nn.Module):
    """x_j = scale v_j + p_j; vectors of another size than d are projected by W_e first.

    positions: sinusoidal (any number), learned (up to `longest`), rotary or none, where nothing is added. key, limit:
    for messages, the part of the recipe that has `longest`, and the key that limits the length of the input.
    """

    def __init__(
        self,
        width: int,
        *,
        size: int,
        positions: str,
        longest: int,
        dropout: float,
        key: str,
        limit: str = "max_length",
        scale: float = 1.0,
    ):
        super().__init__()
        self.size, self.positions, self.longest, self.dropout, self.key = size, positions, longest, dropout, key
        self.limit, self.scale = limit, scale
        self.W_e = nn.Linear(width, size, bias=False) if width != size else None
        if positions == "learned":
            self.P = nn.Parameter(normal(longest, size, over=size**0.5))

    def forward(
        self, vectors: Float[Tensor, "rows steps _"], *, first: int | Tensor = 0
    ) -> Float[Tensor, "rows steps size"]:
        """The inputs at the positions first, first + 1, ..."""
        states = vectors if self.W_e is None else self.W_e(vectors)
        states = states if self.scale == 1 else states * self.scale
        if self.positions in ADDED:
            states = states + self._encodings(first, states.shape[1], states)
        return dropout(states, self.dropout, self.training)

    def equation(self, index: str) -> str:
        """What is added to an input at that index, for `show`."""
        return position_equation(self.positions, self.longest, index)

    def _encodings(self, first: int | Tensor, steps: int, like: Tensor) -> Float[Tensor, "steps size"]:
        numbers = first + torch.arange(steps, device=like.device)
        if self.positions == "sinusoidal":
            return sinusoids(numbers, self.size).to(like.dtype)
        if isinstance(first, int) and (last := first + steps) > self.longest:
            column = "output" if self.key == "decoder" else "the input"
            raise UserError(
                f"{self.key}.longest: {self.longest} learned positions, and {column} has {last}; raise it, set the "
                f"{self.limit} of {column}, or use sinusoidal positions, which have no end"
            )
        return self.P[numbers]


class TokenInput(PositionalInput):
    """x_j = sqrt(d) e(x_j) + p_j; embeddings of another size than d are projected by W_e first."""

    def __init__(
        self,
        embedding: Embedding | OneHot,
        *,
        size: int,
        positions: str,
        longest: int,
        dropout: float,
        key: str = "encoder",
    ):
        super().__init__(
            embedding.size,
            size=size,
            positions=positions,
            longest=longest,
            dropout=dropout,
            key=key,
            scale=math.sqrt(size),
        )
        self.embedding = embedding

    def forward(self, ids: Int[Tensor, "rows steps"], *, first: int | Tensor = 0) -> Float[Tensor, "rows steps size"]:
        """The inputs of symbols at the positions first, first + 1, ..."""
        return super().forward(self.embedding(ids), first=first)

    def token_equation(self, token: str, index: str, *, more: str = "") -> str:
        """x_j of a token, for `show`; more: what else is added to it."""
        projected = "" if self.W_e is None else "W_e "
        return f"x_{index} = sqrt({self.size}) {projected}e({token}){more}{self.equation(index)}"


def position_equation(positions: str, longest: int, index: str) -> str:
    """What is added to an input at that index, so that the model knows its position."""
    if positions == "none":
        return ", without positions"
    if positions == "rotary":
        return f"; rotary: W_q x_{index} and W_k x_{index} are turned by {index}"
    if positions == "learned":
        return f" + p_{index}, a row of P (at most {longest} positions)"
    return f" + p_{index}, sines and cosines of {index}"


def sinusoids(numbers: Int[Tensor, " steps"], size: int) -> Float[Tensor, "steps size"]:
    """p_j = [sin(j w_1), cos(j w_1), sin(j w_2), ...], w_i falling from 1 to 1 / 10,000 (Vaswani et al. 2017).

    >>> sinusoids(torch.tensor([0, 3]), 3)
    tensor([[ 0.0000,  1.0000,  0.0000],
            [ 0.1411, -0.9900,  0.0065]])
    """
    rates = torch.exp(torch.arange(0, size, 2, device=numbers.device) * (-math.log(10_000.0) / size))
    angles = numbers[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :size]
