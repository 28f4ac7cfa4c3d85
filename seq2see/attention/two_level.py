"""Attention to words through their sentences: small places and the larger ones that hold them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.attention.attention import Attention, forced_look
from seq2see.attention.choices import Chosen
from seq2see.attention.records import Candidates, LargerPlaces, Look, Prepared, scatter_to_places
from seq2see.attention.scopes import Positions, Window
from seq2see.attention.scores import Score, compute_energies
from seq2see.memory import Places

# ---------------- Small places and the larger ones that hold them


@dataclass
class TwoLevelQuery:
    """One question to words and to their sentences, with what earlier looks at words left behind.

    larger: the sentences made ready; parent: (batch, queries, places), the sentence of each word.
    """

    query: Float[Tensor, "batch queries query"]
    above: Float[Tensor, "batch queries query"]
    past: Float[Tensor, "batch queries places"] | None
    larger: LargerPlaces
    parent: Int[Tensor, "batch queries places"]

    @classmethod
    def of(cls, query: Tensor, prepared: Prepared, *, above: Tensor | None, past: Tensor | None) -> TwoLevelQuery:
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
class TwoLevelWeights:
    """Weights and energies of words (of those with the given numbers, None: all), energies of all sentences."""

    weights: Float[Tensor, "batch queries candidates"]
    energies: Float[Tensor, "batch queries candidates"]
    above: Float[Tensor, "batch queries larger"] | None
    numbers: Int[Tensor, "batch queries candidates"] | None = None


def group_by_parent(places: Places, prepared: Prepared) -> LargerPlaces:
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
    return LargerPlaces(prepared, inside, real, position + parent * width)


# ---------------- CrossAttention at small places through the larger ones that hold them


class TwoLevelAttention(nn.Module):
    """a_tij = a_ti * a_tj|i: how much a sentence counts, times how much a word counts among those of its sentence.

    The context is that of the words, c_t = sum_ij a_tij w_ij; the weights of all words of an input sum to one. `larger`
    looks at the sentences, `smaller` scores and normalises words and turns their weights into a context.

    A local scope is a window over the words of the whole input. Its sentences are those that hold a word of it, each as
    far from p_t as the nearest of its words; words are weighed among those of their sentence that lie inside.
    """

    def __init__(self, larger: Attention, smaller: Attention):
        super().__init__()
        self.larger, self.smaller = larger, smaller

    @property
    def score(self) -> Score:
        """What scores the places that are looked at."""
        return self.smaller.score

    def prepare(self, places: Places) -> Prepared:
        if places.inside is None:
            raise ValueError("these places lie inside no larger ones")
        return self.smaller.prepare(places).with_larger(group_by_parent(places, self.larger.prepare(places.inside)))

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries places"] | None:
        return self.smaller.begin(prepared, queries)

    def forward(
        self,
        query: Float[Tensor, "batch queries query"],
        prepared: Prepared,
        *,
        above: Float[Tensor, "batch queries query"] | None = None,
        positions: Positions = 0,
        past: Float[Tensor, "batch queries places"] | None = None,
        forced: Float[Tensor, "batch queries places"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Look:
        """As one attention does, over words; `forced` weights are those of words.

        above: what asks the sentences, not given: the query itself.
        """
        past = past if past is not None else self.begin(prepared, query.shape[1])
        asked = TwoLevelQuery.of(query, prepared, above=above, past=past)
        window = self.smaller.scope.window(query, prepared, positions)
        weighed = self._everywhere(asked, prepared) if window is None else self._nearby(asked, prepared, window)
        look = self._chosen(weighed, prepared, generator)
        if forced is not None:
            look = forced_look(look, prepared.values, forced)
        look.larger = asked.summed(look.weights, look.numbers)
        look.larger_energies = weighed.above
        if past is not None:
            look.past = look.added_to(past)
        return look

    def _everywhere(self, asked: TwoLevelQuery, prepared: Prepared) -> TwoLevelWeights:
        """All words of all sentences."""
        larger, mask, parent = asked.larger, prepared.mask[:, None], asked.parent
        sentences: Look = self.larger(asked.above, larger.prepared, past=asked.past_above)
        candidates = Candidates(prepared.keys, prepared.layout, past=asked.past)
        energies = compute_energies(self.smaller.score, asked.query, candidates)
        weights = self._within(energies, larger) * mask * sentences.weights.gather(-1, parent)
        return TwoLevelWeights(weights, energies.masked_fill(~mask, -torch.inf), sentences.energies)

    def _nearby(self, asked: TwoLevelQuery, prepared: Prepared, window: Window) -> TwoLevelWeights:
        """The words of a window: scored with their sentences, one of which stands for all words it has there."""
        larger, shape = asked.larger, window.numbers.shape
        holders = asked.parent.gather(-1, window.numbers)
        words = Candidates(
            prepared.key_gather.take(window.numbers).flatten(0, 1),
            prepared.layout,
            window.numbers.flatten(0, 1),
            _row_each(asked.past),
        )
        sentences = Candidates(
            larger.prepared.key_gather.take(holders).flatten(0, 1),
            larger.prepared.layout,
            holders.flatten(0, 1),
            _row_each(asked.past_above),
        )
        energies = compute_energies(self.smaller.score, asked.query.reshape(-1, 1, asked.query.shape[-1]), words).view(
            shape
        )
        above = compute_energies(self.larger.score, asked.above.reshape(-1, 1, asked.above.shape[-1]), sentences).view(
            shape
        )
        together = (holders[..., :, None] == holders[..., None, :]) & window.real[..., None, :]
        first = window.real & ~together.tril(-1).any(-1)
        if window.bias is not None:
            nearest = torch.where(together, window.bias[..., None, :], -torch.inf).amax(-1)
            energies = energies + window.bias.to(energies.dtype)
            above = above + nearest.masked_fill(~first, 0.0).to(above.dtype)
        share = (together * self.larger.weigh(above, first)[..., None, :]).sum(-1)
        among = self.smaller.weigh(energies[..., None, :].expand(together.shape), together)
        weights = share * among.diagonal(dim1=-2, dim2=-1) * window.real
        told = scatter_to_places(above.masked_fill(~first, -torch.inf), holders, asked.count, empty=-torch.inf)
        return TwoLevelWeights(weights, energies.masked_fill(~window.real, -torch.inf), told, window.numbers)

    def _chosen(self, weighed: TwoLevelWeights, prepared: Prepared, generator: torch.Generator | None) -> Look:
        """What the weights of words become."""
        chosen: Chosen = self.smaller.choice(weighed.weights, generator=generator)
        shares, place = chosen.shares.to(prepared.values.dtype), chosen.place
        if weighed.numbers is None:
            context = torch.bmm(shares, prepared.values)
        else:
            context = (shares[..., None] * prepared.value_gather.take(weighed.numbers)).sum(-2)
            place = None if place is None else weighed.numbers.gather(-1, place[..., None]).squeeze(-1)
        return Look(
            context,
            weighed.weights,
            weighed.energies,
            prepared.mask.shape[1],
            weighed.numbers,
            place,
            chosen.log_prob,
            by_score=chosen.by_score,
        )

    def _within(
        self, energies: Float[Tensor, "batch queries places"], larger: LargerPlaces
    ) -> Float[Tensor, "batch queries places"]:
        """The weight of each word among those of its sentence: words laid out by sentence, normalised, laid back."""
        queries, shape = energies.shape[1], larger.numbers.shape[1:]
        apart = energies.gather(-1, _for_each(larger.numbers.flatten(1), queries)).unflatten(-1, shape)
        weights = self.smaller.weigh(apart, larger.real[:, None])
        return weights.flatten(2).gather(-1, _for_each(larger.back, queries))


def _for_each(numbers: Int[Tensor, "batch places"], queries: int) -> Int[Tensor, "batch queries places"]:
    return numbers[:, None].expand(-1, queries, -1)


def _row_each(past: Float[Tensor, "batch queries places"] | None) -> Float[Tensor, "rows 1 places"] | None:
    """Each query with a window of its own is a row of the batch, and so is what it remembers."""
    return None if past is None else past.reshape(-1, 1, past.shape[-1])
