"""Attention = candidates -> score -> mask -> normalise -> choose -> context, from parts that can be replaced."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2see.attention.normalisers import masked_softmax
from seq2see.attention.scores import Score
from seq2see.memory import Places


@dataclass
class Prepared:
    """What an attention computes once per input: its keys, beside the places as the encoder gave them."""

    keys: Float[Tensor, "batch places size"]
    places: Places

    @property
    def values(self) -> Float[Tensor, "batch places value"]:
        return self.places.states

    @property
    def mask(self) -> Bool[Tensor, "batch places"]:
        return self.places.mask

    def select(self, rows: Int[Tensor, " chosen"]) -> Prepared:
        return Prepared(self.keys[rows], self.places.select(rows))


@dataclass
class Look:
    """One look, or several at once: what was seen, with which weights, from which energies."""

    context: Float[Tensor, "batch queries value"]
    weights: Float[Tensor, "batch queries places"]
    energies: Float[Tensor, "batch queries places"]
    past: Float[Tensor, "batch queries places"] | None = None


class Attention(nn.Module):
    """a_t = softmax over real places of score(q_t, h_j); c_t = sum_j a_tj h_j.

    >>> from seq2see.attention.scores import Dot
    >>> look = Attention(Dot(2, 2))
    >>> places = Places(torch.eye(2)[None], torch.tensor([[True, True]]))
    >>> look(torch.zeros(1, 1, 2), look.prepare(places)).context
    tensor([[[0.5000, 0.5000]]])
    """

    def __init__(self, score: Score):
        super().__init__()
        self.score = score

    def prepare(self, places: Places) -> Prepared:
        return Prepared(self.score.keys(places.states), places)

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries places"] | None:
        """What the score remembers of earlier looks before the first one, for so many queries per input."""
        return self.score.begin(prepared.keys, queries)

    def forward(
        self,
        query: Float[Tensor, "batch queries query"],
        prepared: Prepared,
        *,
        past: Float[Tensor, "batch queries places"] | None = None,
        forced: Float[Tensor, "batch queries places"] | None = None,
    ) -> Look:
        """Look once for each query. `forced` weights, where they are not NaN, take the place of the model's own."""
        remembered = () if past is None else (past,)
        energies = self.score.energies(query, prepared.keys, *remembered)
        weights = masked_softmax(energies, prepared.mask)
        if forced is not None:
            weights = torch.where(forced.isnan(), weights, forced)
        after = None if past is None else self.score.advance(past, weights)
        return Look(torch.bmm(weights, prepared.values), weights, energies, after)
