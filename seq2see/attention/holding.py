"""Small places and the larger ones that hold them: which lie where, and one question asked of both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.attention.records import Larger, Prepared
from seq2see.memory import Places


@dataclass
class Asked:
    """One question to words and to their sentences, with what earlier looks at words left behind.

    larger: the sentences made ready; parent: (batch, queries, places), the sentence of each word.
    """

    query: Float[Tensor, "batch queries query"]
    above: Float[Tensor, "batch queries query"]
    past: Float[Tensor, "batch queries places"] | None
    larger: Larger
    parent: Int[Tensor, "batch queries places"]

    @classmethod
    def of(cls, query: Tensor, prepared: Prepared, *, above: Tensor | None, past: Tensor | None) -> Asked:
        if prepared.larger is None or prepared.places.parent is None:
            raise ValueError("what was prepared lies inside no larger places")
        parent = prepared.places.parent[:, None].expand(-1, query.shape[1], -1)
        return cls(query, query if above is None else above, past, prepared.larger, parent)

    @property
    def count(self) -> int:
        """How many sentences there are."""
        return self.larger.prepared.mask.shape[1]

    @property
    def past_above(self) -> Float[Tensor, "batch queries larger"] | None:
        """What earlier looks left behind at sentences: that of their words."""
        return None if self.past is None else self.summed(self.past)

    def summed(
        self,
        weights: Float[Tensor, "batch queries candidates"],
        numbers: Int[Tensor, "batch queries candidates"] | None = None,
    ) -> Float[Tensor, "batch queries larger"]:
        """What the words of each sentence have together; numbers: which words these are, None: all of them in order."""
        holders = self.parent if numbers is None else self.parent.gather(-1, numbers)
        return weights.new_zeros(*weights.shape[:-1], self.count).scatter_add(-1, holders, weights)


@dataclass
class Weighed:
    """Weights and energies of words (of those with the given numbers, None: all), energies of all sentences."""

    weights: Float[Tensor, "batch queries candidates"]
    energies: Float[Tensor, "batch queries candidates"]
    above: Float[Tensor, "batch queries larger"] | None
    numbers: Int[Tensor, "batch queries candidates"] | None = None


def laid_out(places: Places, prepared: Prepared) -> Larger:
    """Words laid out by the sentence that holds them; those of a sentence stand in a run."""
    if places.parent is None:
        raise ValueError("these places do not know the larger ones that hold them")
    parent, mask = places.parent, places.mask
    numbers = torch.arange(parent.shape[1], device=parent.device).expand_as(parent)
    opens = torch.ones_like(mask)
    opens[:, 1:] = parent[:, 1:] != parent[:, :-1]
    first = torch.where(opens, numbers, 0).cummax(1).values
    position = torch.where(mask, numbers - first, 0)
    width = int(position.max()) + 1 if position.numel() else 1
    shape = (len(parent), prepared.mask.shape[1], width)
    inside = torch.zeros(shape, dtype=torch.long, device=parent.device)
    real = torch.zeros(shape, dtype=torch.bool, device=parent.device)
    row, place = mask.nonzero(as_tuple=True)
    where = row, parent[row, place], position[row, place]
    inside[where] = place
    real[where] = True
    return Larger(prepared, inside, real, position + parent * width)
