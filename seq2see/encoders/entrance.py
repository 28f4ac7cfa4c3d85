"""What enters a Transformer: embeddings of symbols, scaled, with where they stand added to them."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import dropout

from seq2see.embeddings import Embedding, OneHot
from seq2see.errors import UserError


class Entrance(nn.Module):
    """x_j = sqrt(d) e(x_j) + p_j; embeddings of another size than d go through W_e first.

    positions: sinusoidal (any number of them), learned (up to `longest`), or none, where order has no meaning.
    """

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
        super().__init__()
        self.embedding = embedding
        self.size, self.positions, self.longest, self.dropout, self.key = size, positions, longest, dropout, key
        self.W_e = nn.Linear(embedding.size, size, bias=False) if embedding.size != size else None
        if positions == "learned":
            self.P = nn.Parameter(torch.randn(longest, size) / size**0.5)

    def forward(self, ids: Int[Tensor, "rows steps"], *, first: int = 0) -> Float[Tensor, "rows steps size"]:
        """The vectors of symbols that stand at first, first + 1, ..."""
        embedded: Tensor = self.embedding(ids)
        if self.W_e is not None:
            embedded = self.W_e(embedded)
        embedded = embedded * math.sqrt(self.size)
        if self.positions != "none":
            embedded = embedded + self._where(first, ids.shape[1], embedded)
        return dropout(embedded, self.dropout, self.training)

    def _where(self, first: int, steps: int, like: Tensor) -> Float[Tensor, "steps size"]:
        last = first + steps
        if self.positions == "sinusoidal":
            return sinusoids(torch.arange(first, last, device=like.device), self.size).to(like.dtype)
        if last > self.longest:
            column = "output" if self.key == "decoder" else "the input"
            raise UserError(
                f"{self.key}.longest: {self.longest} learned positions, and {column} has {last}; raise it, set the "
                f"max_length of {column}, or use sinusoidal positions, which have no end"
            )
        return self.P[first:last]


def sinusoids(numbers: Int[Tensor, " steps"], size: int) -> Float[Tensor, "steps size"]:
    """p_j = [sin(j w_1), cos(j w_1), sin(j w_2), ...], w_i falling from 1 to 1 / 10,000 (Vaswani et al. 2017).

    >>> sinusoids(torch.tensor([0, 3]), 3)
    tensor([[ 0.0000,  1.0000,  0.0000],
            [ 0.1411, -0.9900,  0.0065]])
    """
    rates = torch.exp(torch.arange(0, size, 2, device=numbers.device) * (-math.log(10_000.0) / size))
    angles = numbers[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :size]
