"""Looking at small places through the larger ones that hold them: at words through their sentences."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.attention.attention import Attention, forced_look
from seq2see.attention.choices import Chosen
from seq2see.attention.normalisers import masked
from seq2see.attention.records import Candidates, Look, Prepared
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
        if places.inside is None or places.parent is None:
            raise ValueError("these places lie inside no larger ones")
        prepared = self.smaller.prepare(places)
        prepared.larger = self.larger.prepare(places.inside)
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
        above = None if past is None else _summed(past, parent, larger.mask.shape[1])
        sentences: Look = self.larger(query, larger, positions=positions, past=above)
        energies = self.smaller.score(query, Candidates(prepared.keys, prepared.layout, past=past))
        within = self._within(energies, places)
        weights = within * sentences.weights.gather(-1, parent)
        chosen: Chosen = self.smaller.choice(weights, generator=generator)
        look = Look(
            torch.bmm(chosen.shares, prepared.values),
            weights,
            energies,
            places.mask.shape[1],
            place=chosen.place,
            place_log_prob=chosen.log_prob,
            by_score=chosen.by_score,
        )
        if forced is not None:
            look = forced_look(look, prepared.values, forced)
        look.larger = _summed(look.weights, parent, larger.mask.shape[1])
        look.larger_energies = sentences.energies
        if past is not None:
            look.past = past + look.weights
        return look

    def _within(
        self, energies: Float[Tensor, "batch queries places"], places: Places
    ) -> Float[Tensor, "batch queries places"]:
        """The weight of each word among those of its sentence: words laid out by sentence, normalised, laid back."""
        numbers, real = _by_parent(places)
        batch, queries = energies.shape[:2]
        laid_out = energies.gather(-1, numbers.flatten(1)[:, None].expand(-1, queries, -1))
        grid = laid_out.unflatten(-1, numbers.shape[1:])
        temperature = self.smaller.temperature
        scaled = grid if temperature == 1.0 else grid / temperature
        weights = masked(self.smaller.normalise, scaled, real[:, None])
        back = _position(places) + _parent(places) * numbers.shape[-1]
        return weights.flatten(2).gather(-1, back[:, None].expand(batch, queries, -1)) * places.mask[:, None]


def _parent(places: Places) -> Int[Tensor, "batch places"]:
    if places.parent is None:
        raise ValueError("these places lie inside no larger ones")
    return places.parent


def _position(places: Places) -> Int[Tensor, "batch places"]:
    """Where each word stands in its sentence, from 0; words of a sentence stand in a run."""
    parent = _parent(places)
    numbers = torch.arange(parent.shape[1], device=parent.device).expand_as(parent)
    opens = torch.ones_like(parent, dtype=torch.bool)
    opens[:, 1:] = parent[:, 1:] != parent[:, :-1]
    first = torch.where(opens, numbers, 0).cummax(1).values
    return torch.where(places.mask, numbers - first, 0)


def _by_parent(places: Places) -> tuple[Int[Tensor, "batch larger inside"], Tensor]:
    """For each sentence the numbers of its words, and which of them are real."""
    if places.inside is None:
        raise ValueError("these places lie inside no larger ones")
    parent, position, mask = _parent(places), _position(places), places.mask
    width = int(position.max()) + 1 if position.numel() else 1
    shape = (len(parent), places.inside.mask.shape[1], width)
    numbers = torch.zeros(shape, dtype=torch.long, device=parent.device)
    real = torch.zeros(shape, dtype=torch.bool, device=parent.device)
    row, place = mask.nonzero(as_tuple=True)
    where = row, parent[row, place], position[row, place]
    numbers[where] = place
    real[where] = True
    return numbers, real


def _summed(
    weights: Float[Tensor, "batch queries places"], parent: Int[Tensor, "batch queries places"], larger: int
) -> Float[Tensor, "batch queries larger"]:
    """What the words of each sentence have together."""
    return weights.new_zeros(*weights.shape[:-1], larger).scatter_add(-1, parent, weights)
