"""Looking at small places through the larger ones that hold them: at words through their sentences."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.attention.asking import energies_of
from seq2see.attention.attention import Attention, forced_look
from seq2see.attention.choices import Chosen
from seq2see.attention.normalisers import masked
from seq2see.attention.records import Candidates, Larger, Look, Prepared
from seq2see.attention.scopes import Positions
from seq2see.memory import Places


class Through(nn.Module):
    """a_tij = a_ti * a_tj|i: how much a sentence counts, times how much a word counts among those of its sentence.

    The context is that of the words, c_t = sum_ij a_tij w_ij; the weights of all words of an input sum to one. `larger`
    looks at the sentences, `smaller` scores and normalises words and turns their weights into a context.
    """

    def __init__(self, larger: Attention, smaller: Attention):
        super().__init__()
        self.larger, self.smaller = larger, smaller

    def prepare(self, places: Places) -> Prepared:
        if places.inside is None:
            raise ValueError("these places lie inside no larger ones")
        prepared = self.smaller.prepare(places)
        prepared.larger = _larger(places, self.larger.prepare(places.inside))
        return prepared

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries places"] | None:
        return self.smaller.begin(prepared, queries)

    def forward(
        self,
        query: Float[Tensor, "batch queries query"],
        prepared: Prepared,
        *,
        positions: Positions = 0,
        past: Float[Tensor, "batch queries places"] | None = None,
        forced: Float[Tensor, "batch queries places"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Look:
        """As one attention does, over words; `forced` weights are those of words."""
        places, larger = prepared.places, prepared.larger
        if larger is None or places.parent is None:
            raise ValueError("what was prepared lies inside no larger places")
        past = past if past is not None else self.begin(prepared, query.shape[1])
        parent = places.parent[:, None].expand(-1, query.shape[1], -1)
        count = larger.prepared.mask.shape[1]
        above = None if past is None else _summed(past, parent, count)
        sentences: Look = self.larger(query, larger.prepared, positions=positions, past=above)
        energies = energies_of(self.smaller.score, query, Candidates(prepared.keys, prepared.layout, past=past))
        weights = self._within(energies, larger) * places.mask[:, None] * sentences.weights.gather(-1, parent)
        chosen: Chosen = self.smaller.choice(weights, generator=generator)
        look = Look(
            torch.bmm(chosen.shares.to(prepared.values.dtype), prepared.values),
            weights,
            energies.masked_fill(~places.mask[:, None], -torch.inf),
            places.mask.shape[1],
            place=chosen.place,
            place_log_prob=chosen.log_prob,
            by_score=chosen.by_score,
        )
        if forced is not None:
            look = forced_look(look, prepared.values, forced)
        look.larger = _summed(look.weights, parent, count)
        look.larger_energies = sentences.energies
        if past is not None:
            look.past = past + look.weights
        return look

    def _within(
        self, energies: Float[Tensor, "batch queries places"], larger: Larger
    ) -> Float[Tensor, "batch queries places"]:
        """The weight of each word among those of its sentence: words laid out by sentence, normalised, laid back."""
        queries, shape = energies.shape[1], larger.numbers.shape[1:]
        laid_out = energies.gather(-1, _for_each(larger.numbers.flatten(1), queries)).unflatten(-1, shape)
        temperature = self.smaller.temperature
        scaled = laid_out if temperature == 1.0 else laid_out / temperature
        weights = masked(self.smaller.normalise, scaled, larger.real[:, None])
        return weights.flatten(2).gather(-1, _for_each(larger.back, queries))


def _for_each(numbers: Int[Tensor, "batch places"], queries: int) -> Int[Tensor, "batch queries places"]:
    return numbers[:, None].expand(-1, queries, -1)


def _larger(places: Places, prepared: Prepared) -> Larger:
    """Words laid out by sentence; those of a sentence stand in a run."""
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


def _summed(
    weights: Float[Tensor, "batch queries places"], parent: Int[Tensor, "batch queries places"], larger: int
) -> Float[Tensor, "batch queries larger"]:
    """What the words of each sentence have together."""
    return weights.new_zeros(*weights.shape[:-1], larger).scatter_add(-1, parent, weights)
