"""What passes between the parts of an attention: places made ready, candidates picked, looks taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.deferred_gradients import DeferredGather
from seq2see.memory import Layout, Places


@dataclass
class Prepared:
    """What an attention computes once per input, beside the places as the encoder gave them.

    keys, values: (batch, places, ...), or (batch, heads, places, ...) where there are heads; extent: (batch, axes), how
    far real places reach along each axis; folded: where there are heads, the same with heads as rows of the batch;
    larger: the places that hold these, where they are looked at through them.
    Windows are taken through ledgers. A loop over time pays for its windows, not for all places.
    """

    keys: Float[Tensor, "batch *heads places size"]
    values: Float[Tensor, "batch *heads places value"]
    places: Places
    extent: Int[Tensor, "batch axes"]
    key_gather: DeferredGather
    value_gather: DeferredGather
    folded: Prepared | None = None
    larger: LargerPlaces | None = None

    @classmethod
    def of(
        cls,
        keys: Float[Tensor, "batch *heads places size"],
        values: Float[Tensor, "batch *heads places value"],
        places: Places,
    ) -> Prepared:
        made = cls(
            keys, values, places, extent_of(places.mask, places.layout), DeferredGather(keys), DeferredGather(values)
        )
        if keys.dim() == 4:
            flat, mask = values.flatten(0, 1), places.mask.repeat_interleave(keys.shape[1], 0)
            parent = None if places.parent is None else places.parent.repeat_interleave(keys.shape[1], 0)
            made.folded = cls.of(keys.flatten(0, 1), flat, Places(flat, mask, places.layout, parent=parent))
        return made

    def with_larger(self, larger: LargerPlaces | None) -> Prepared:
        """The same, to be looked at through larger places; by every head through its own keys of these."""
        heads = None if larger is None or self.folded is None else larger.folded(self.keys.shape[1])
        folded = None if self.folded is None else self.folded.with_larger(heads)
        return replace(self, larger=larger, folded=folded)

    @property
    def mask(self) -> Bool[Tensor, "batch places"]:
        return self.places.mask

    @property
    def layout(self) -> Layout:
        return self.places.layout

    def select(self, rows: Int[Tensor, " chosen"]) -> Prepared:
        chosen = Prepared.of(self.keys[rows], self.values[rows], self.places.select(rows))
        return chosen if self.larger is None else chosen.with_larger(self.larger.select(rows))


@dataclass
class LargerPlaces:
    """Larger places made ready, and which of the smaller ones each holds.

    numbers, real: (batch, larger, inside), for each larger place the numbers of those inside it, and which are real;
    back: (batch, places), where each of these stands in the flattened `numbers`.
    """

    prepared: Prepared
    numbers: Int[Tensor, "batch larger inside"]
    real: Bool[Tensor, "batch larger inside"]
    back: Int[Tensor, "batch places"]

    def select(self, rows: Int[Tensor, " chosen"]) -> LargerPlaces:
        return LargerPlaces(self.prepared.select(rows), self.numbers[rows], self.real[rows], self.back[rows])

    def folded(self, heads: int) -> LargerPlaces:
        """The same with heads as rows of the batch."""
        if self.prepared.folded is None:
            raise ValueError("these larger places were not prepared for heads")
        numbers, real, back = (part.repeat_interleave(heads, 0) for part in (self.numbers, self.real, self.back))
        return LargerPlaces(self.prepared.folded, numbers, real, back)


def extent_of(mask: Bool[Tensor, "batch places"], layout: Layout) -> Int[Tensor, "batch axes"]:
    """How far the real places reach: their number in a line; rows and columns on a grid.

    >>> extent_of(torch.tensor([[True, True, False, False]]), Layout("grid", (2, 2)))
    tensor([[1, 2]])
    """
    if layout.kind != "grid":
        return mask.sum(1, keepdim=True)
    grid = mask.view(len(mask), *layout.shape)
    return torch.stack([grid.any(2).sum(1), grid.any(1).sum(1)], dim=1)


@dataclass
class Candidates:
    """The places a score is asked about: all of an input's, or for each query a window of its own.

    keys: (batch, places, size); past: (batch, queries, all places), the sum of earlier looks, where a score remembers
    them; numbers: (batch, places), where each candidate stands in the input, None: all of them in order;
    layout: how the whole input lies. A window has its queries folded into the batch: there is one query for each.
    """

    keys: Float[Tensor, "batch places size"]
    layout: Layout
    numbers: Int[Tensor, "batch places"] | None = None
    past: Float[Tensor, "batch queries _"] | None = None


@dataclass
class Look:
    """One look, or several at once; rows and steps come first, whatever their number.

    context: (..., value); weights, energies: (..., candidates), or (..., heads, candidates); numbers: like weights,
    where the candidates stand, None: all places in order; places: how many places the input has;
    place, place_log_prob: (...) or (..., heads), the one that was chosen and the log-probability of choosing it, where
    the choice is hard; past: (..., places), what the score remembers after the look; heads: how many, 0: no such axis;
    by_score: no gradient passes through the choice, so that it is learned from `place_log_prob` alone;
    larger, larger_energies: (..., larger places), weights and energies of the places through which these were seen.
    """

    context: Float[Tensor, "*rows value"]
    weights: Float[Tensor, "*looks candidates"]
    energies: Float[Tensor, "*looks candidates"] | None
    places: int
    numbers: Int[Tensor, "*looks candidates"] | None = None
    place: Int[Tensor, "*looks"] | None = None
    place_log_prob: Float[Tensor, "*looks"] | None = None
    past: Float[Tensor, "*rows places"] | None = None
    heads: int = 0
    by_score: bool = False
    larger: Float[Tensor, "*rows larger"] | None = None
    larger_energies: Float[Tensor, "*rows larger"] | None = None

    def by_head(self) -> Float[Tensor, "*rows places"]:
        """The weights over all places of the input, zero at what was no candidate: (..., [heads,] places)."""
        return scatter_to_places(self.weights, self.numbers, self.places)

    def dense(self) -> Float[Tensor, "*rows places"]:
        """The same without heads: their mean."""
        weights = self.by_head()
        return weights.mean(-2) if self.heads else weights

    def added_to(self, past: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
        """The sum of earlier looks and this one, which has no heads; of a window only its weights are kept."""
        if self.numbers is None:
            return past + self.weights
        return past.scatter_add(-1, self.numbers, self.weights.to(past.dtype))

    def dense_energies(self) -> Float[Tensor, "*rows places"]:
        """Energies over all places, minus infinity at what was no candidate, and at padding; of heads the mean."""
        if self.energies is None:
            raise ValueError("this look did not keep its energies")
        spread_out = scatter_to_places(self.energies, self.numbers, self.places, empty=-torch.inf)
        return mean_over_heads(spread_out) if self.heads else spread_out

    def map(self, change: Callable[[Tensor], Tensor]) -> Look:
        """The same look with every tensor changed alike: rows folded, selected or cut."""
        tensors = {one.name: getattr(self, one.name) for one in fields(self)}
        changed: dict[str, Any] = {name: change(part) for name, part in tensors.items() if isinstance(part, Tensor)}
        return replace(self, **changed)

    @classmethod
    def stacked(cls, looks: Sequence[Look]) -> Look:
        """The looks of successive steps as one, (rows, steps, ...); what only a step needs (energies, past) is left."""

        first, together = looks[0], dict[str, Any]()
        for name in ("context", "weights", "numbers", "place", "place_log_prob", "larger"):
            if getattr(first, name) is not None:
                together[name] = torch.stack([getattr(look, name) for look in looks], dim=1)
        return replace(first, energies=None, past=None, larger_energies=None, **together)


def mean_over_heads(energies: Float[Tensor, "*rows heads places"]) -> Float[Tensor, "*rows places"]:
    """The mean energy of each place over the heads that asked it, minus infinity where none did.

    Heads with windows of their own ask different places: one that did not ask says nothing of a place.

    >>> mean_over_heads(torch.tensor([[1.0, 2.0, -torch.inf], [3.0, -torch.inf, -torch.inf]]))
    tensor([2., 2., -inf])
    """
    asked = energies > -torch.inf
    heads = asked.sum(-2)
    return torch.where(heads > 0, energies.masked_fill(~asked, 0.0).sum(-2) / heads.clamp(min=1), -torch.inf)


def scatter_to_places(
    weights: Float[Tensor, "*rows candidates"],
    numbers: Int[Tensor, "*rows candidates"] | None,
    places: int,
    *,
    empty: float = 0.0,
) -> Float[Tensor, "*rows places"]:
    """Each candidate's weight at its place. A candidate beyond the input (weight 0, energy -inf) changes nothing there.

    >>> scatter_to_places(torch.tensor([[0.5, 0.5]]), torch.tensor([[2, 1]]), 4)
    tensor([[0.0000, 0.5000, 0.5000, 0.0000]])
    """
    if numbers is None:
        return weights
    out = weights.new_full((*weights.shape[:-1], places), empty)
    return out.scatter_add(-1, numbers, weights) if empty == 0 else out.scatter_reduce(-1, numbers, weights, "amax")
