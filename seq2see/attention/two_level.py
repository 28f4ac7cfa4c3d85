"""Two-level attention: words weighted through the sentences that contain them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.attention.attention import Attention, force_weights
from seq2see.attention.choices import Chosen
from seq2see.attention.records import Candidates, LargerPlaces, Look, LookEquations, Prepared, scatter_to_places
from seq2see.attention.scopes import Positions, Window
from seq2see.attention.scores import Score, compute_energies
from seq2see.memory import Places, largest
from seq2see.symbols import Symbols, prefixed, symbols_of


@dataclass
class TwoLevelQuery:
    """A query to words and one to their sentences, with the sum of earlier looks at words.

    larger: the prepared sentences; parent: (batch, queries, places), the number of each word's sentence.
    """

    query: Float[Tensor, "batch queries query"]
    larger_query: Float[Tensor, "batch queries query"]
    past: Float[Tensor, "batch queries places"] | None
    larger: LargerPlaces
    parent: Int[Tensor, "batch queries places"]

    @classmethod
    def of(
        cls, query: Tensor, prepared: Prepared, *, larger_query: Tensor | None, past: Tensor | None
    ) -> TwoLevelQuery:
        if prepared.larger is None or prepared.places.parent is None:
            raise ValueError("the prepared places are not part of larger ones")
        parent = prepared.places.parent[:, None].expand(-1, query.shape[1], -1)
        return cls(query, query if larger_query is None else larger_query, past, prepared.larger, parent)

    @property
    def count(self) -> int:
        """The number of sentences."""
        return self.larger.prepared.mask.shape[1]

    @property
    def larger_past(self) -> Float[Tensor, "batch queries larger"] | None:
        """The sum of earlier looks at the words of each sentence."""
        return None if self.past is None else self.summed(self.past)

    def summed(
        self,
        weights: Float[Tensor, "batch queries candidates"],
        numbers: Int[Tensor, "batch queries candidates"] | None = None,
    ) -> Float[Tensor, "batch queries larger"]:
        """The sum over the words of each sentence; numbers: the words of the weights, None: all in order."""
        parents = self.parent if numbers is None else self.parent.gather(-1, numbers)
        return weights.new_zeros(*weights.shape[:-1], self.count).scatter_add(-1, parents, weights)


@dataclass
class TwoLevelWeights:
    """Weights and energies of words (those of `numbers`, None: all of them), energies of all sentences."""

    weights: Float[Tensor, "batch queries candidates"]
    energies: Float[Tensor, "batch queries candidates"]
    larger_energies: Float[Tensor, "batch queries larger"] | None
    numbers: Int[Tensor, "batch queries candidates"] | None = None


def group_by_parent(places: Places, prepared: Prepared) -> LargerPlaces:
    """The words of each sentence; words stand in the order of their sentences."""
    if places.parent is None:
        raise ValueError("these places do not know the larger ones that contain them")
    parent, mask = places.parent, places.mask
    rows, larger = prepared.mask.shape
    numbers = torch.arange(parent.shape[1], device=parent.device).expand_as(parent)
    counts = torch.zeros(rows, larger, dtype=torch.long, device=parent.device).scatter_add(1, parent, mask.long())
    first = (counts.cumsum(1) - counts).gather(1, parent)  # how many words stand before the word's own sentence
    position = torch.where(mask, mask.long().cumsum(1) - 1 - first, 0)
    width = largest(position) + 1 if position.numel() else 1
    back = position + parent * width
    # padding goes to one more column, which is cut off
    where = torch.where(mask, back, larger * width)
    inside = torch.zeros(rows, larger * width + 1, dtype=torch.long, device=parent.device).scatter(1, where, numbers)
    real = torch.zeros(rows, larger * width + 1, dtype=torch.bool, device=parent.device).scatter(1, where, mask)
    numbers, real = (part[:, :-1].unflatten(1, (larger, width)) for part in (inside, real))
    return LargerPlaces(prepared, numbers, real, back)


class TwoLevelAttention(nn.Module):
    """a_tij = a_ti * a_tj|i: the weight of a sentence, times the weight of a word within its sentence.

    The context is c_t = sum_ij a_tij w_ij, over words; the weights of all words of an input sum to one. `larger` is the
    attention over sentences, `smaller` the one that scores and normalises words and chooses among them.

    A local scope is a window over the words of the whole input. Its sentences are those with a word inside the window,
    each as far from p_t as the nearest of its words; a word's weight is relative to the words of its sentence that lie
    inside the window.
    """

    def __init__(self, larger: Attention, smaller: Attention):
        super().__init__()
        self.larger, self.smaller = larger, smaller

    @property
    def score(self) -> Score:
        """The score of words."""
        return self.smaller.score

    def prepare(self, places: Places) -> Prepared:
        if places.inside is None:
            raise ValueError("these places are not part of larger ones")
        return self.smaller.prepare(places).with_larger(group_by_parent(places, self.larger.prepare(places.inside)))

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries places"] | None:
        return self.smaller.begin(prepared, queries)

    def forward(
        self,
        query: Float[Tensor, "batch queries query"],
        prepared: Prepared,
        *,
        larger_query: Float[Tensor, "batch queries query"] | None = None,
        positions: Positions = 0,
        past: Float[Tensor, "batch queries places"] | None = None,
        forced: Float[Tensor, "batch queries places"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Look:
        """As in `Attention`, over words; forced: weights of words; larger_query: the query to sentences, if another."""
        past = past if past is not None else self.begin(prepared, query.shape[1])
        queries = TwoLevelQuery.of(query, prepared, larger_query=larger_query, past=past)
        window = self.smaller.scope.window(query, prepared, positions)
        weighed = self._weigh_all(queries, prepared) if window is None else self._weigh_near(queries, prepared, window)
        look = self._choose(weighed, prepared, generator)
        if forced is not None:
            look = force_weights(look, prepared.values, forced)
        look.larger = queries.summed(look.weights, look.numbers)
        look.larger_energies = weighed.larger_energies
        if past is not None:
            look.past = look.added_to(past)
        look.query = query
        return look

    def _weigh_all(self, queries: TwoLevelQuery, prepared: Prepared) -> TwoLevelWeights:
        """The weights of all words."""
        larger, mask, parent = queries.larger, prepared.mask[:, None], queries.parent
        sentences: Look = self.larger(queries.larger_query, larger.prepared, past=queries.larger_past)
        candidates = Candidates(prepared.keys, prepared.layout, past=queries.past)
        energies = compute_energies(self.smaller.score, queries.query, candidates)
        weights = self._weigh_within(energies, larger) * mask * sentences.weights.gather(-1, parent)
        return TwoLevelWeights(weights, energies.masked_fill(~mask, -torch.inf), sentences.energies)

    def _weigh_near(self, queries: TwoLevelQuery, prepared: Prepared, window: Window) -> TwoLevelWeights:
        """The weights of the words of a window; the first word of each sentence there stands for the sentence."""
        larger, shape = queries.larger, window.numbers.shape
        parents = queries.parent.gather(-1, window.numbers)
        words = Candidates(
            prepared.key_gather.take(window.numbers).flatten(0, 1),
            prepared.layout,
            window.numbers.flatten(0, 1),
            None if queries.past is None else _folded(queries.past),
        )
        sentences = Candidates(
            larger.prepared.key_gather.take(parents).flatten(0, 1),
            larger.prepared.layout,
            parents.flatten(0, 1),
            None if queries.larger_past is None else _folded(queries.larger_past),
        )
        energies = compute_energies(self.smaller.score, _folded(queries.query), words).view(shape)
        above = compute_energies(self.larger.score, _folded(queries.larger_query), sentences).view(shape)
        together = (parents[..., :, None] == parents[..., None, :]) & window.real[..., None, :]
        first = window.real & ~together.tril(-1).any(-1)
        if window.bias is not None:
            nearest = torch.where(together, window.bias[..., None, :], -torch.inf).amax(-1)
            energies = energies + window.bias.to(energies.dtype)
            above = above + nearest.masked_fill(~first, 0.0).to(above.dtype)
        share = (together * self.larger.weigh(above, first)[..., None, :]).sum(-1)
        among = self.smaller.weigh(energies[..., None, :].expand(together.shape), together)
        weights = share * among.diagonal(dim1=-2, dim2=-1) * window.real
        energies = energies.masked_fill(~window.real, -torch.inf)
        above = scatter_to_places(above.masked_fill(~first, -torch.inf), parents, queries.count, empty=-torch.inf)
        return TwoLevelWeights(weights, energies, above, window.numbers)

    def _choose(self, weighed: TwoLevelWeights, prepared: Prepared, generator: torch.Generator | None) -> Look:
        """The context, by the choice of `smaller`."""
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

    def _weigh_within(
        self, energies: Float[Tensor, "batch queries places"], larger: LargerPlaces
    ) -> Float[Tensor, "batch queries places"]:
        """The weight of each word within its sentence: words grouped by sentence, normalised, and put back in order."""
        queries, shape = energies.shape[1], larger.numbers.shape[1:]
        apart = energies.gather(-1, _expanded(larger.numbers.flatten(1), queries)).unflatten(-1, shape)
        weights = self.smaller.weigh(apart, larger.real[:, None])
        return weights.flatten(2).gather(-1, _expanded(larger.back, queries))

    def equations(self) -> LookEquations:
        """How a query becomes a context, for `show`."""
        window = self.smaller.scope.equations(place="words")
        if window:
            window[0] += ", and the sentences i that hold one"
        if len(window) > 1:
            window.append("e_ti = e_ti - as much as the nearest word of the sentence")
        sentences = self.larger.weight_equation(weight="a_ti", energy="e_ti", other="e_tk")
        words = self.smaller.weight_equation(weight="a_tj|i", energy="e_tj", other="e_tk")
        return LookEquations(
            self.score.equation(),
            window=window,
            weights=[
                f"{sentences}, over the sentences h_i, by a score of their own",
                f"{words}, over the words of sentence i",
                "a_tij = a_ti * a_tj|i: the weights of all words sum to one",
            ],
            context=self.smaller.choice.equation(place="w_ij", weight="a_tij"),
            place="w_ij",
            larger="e_i of sentences likewise, with k_i = h_i",
            given=self.smaller.choice.conditioned_on,
        )

    def parameter_symbols(self) -> Symbols:
        sentences = prefixed("larger", symbols_of(self.larger), where="sentences")
        return sentences | prefixed("smaller", symbols_of(self.smaller), where="words")


def _expanded(numbers: Int[Tensor, "batch places"], queries: int) -> Int[Tensor, "batch queries places"]:
    return numbers[:, None].expand(-1, queries, -1)


def _folded(rows: Float[Tensor, "batch queries _"]) -> Float[Tensor, "folded 1 _"]:
    """Queries folded into the batch: with windows each query is a row of its own."""
    return rows.reshape(-1, 1, rows.shape[-1])
