"""Records of an attention: prepared places, candidates of a query, and looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.deferred_gradients import DeferredGather, Product, plain_product
from seq2see.looks import Layout
from seq2see.memory import Places, repeat_rows


@dataclass
class Prepared:
    """What an attention computes once per input, beside the places themselves.

    keys, values: (batch, places, ...), or (batch, heads, places, ...) where there are heads; extent: (batch, axes), how
    far real places reach along each axis; folded: where there are heads, the same with heads as rows of the batch;
    larger: the places that contain these, for two-level attention.
    key_gather, value_gather: take windows of keys and values, so that a loop over time costs its windows and not all
    places; product: multiplies queries with weights.
    """

    keys: Float[Tensor, "batch *heads places size"]
    values: Float[Tensor, "batch *heads places value"]
    places: Places
    extent: Int[Tensor, "batch axes"]
    key_gather: DeferredGather
    value_gather: DeferredGather
    folded: Prepared | None = None
    larger: LargerPlaces | None = None
    product: Product = plain_product

    @classmethod
    def of(
        cls,
        keys: Float[Tensor, "batch *heads places size"],
        values: Float[Tensor, "batch *heads places value"],
        places: Places,
    ) -> Prepared:
        extent = extent_of(places.mask, places.layout)
        prepared = cls(keys, values, places, extent, DeferredGather(keys), DeferredGather(values))
        if keys.dim() == 4:
            flat, mask = values.flatten(0, 1), repeat_rows(places.mask, keys.shape[1])
            parent = None if places.parent is None else repeat_rows(places.parent, keys.shape[1])
            prepared.folded = cls.of(keys.flatten(0, 1), flat, Places(flat, mask, places.layout, parent=parent))
        return prepared

    def with_larger(self, larger: LargerPlaces | None) -> Prepared:
        """The same places with those that contain them; each head has its own keys of these."""
        heads = None if larger is None or self.folded is None else larger.folded(self.keys.shape[1])
        folded = None if self.folded is None else self.folded.with_larger(heads)
        return replace(self, larger=larger, folded=folded)

    @property
    def mask(self) -> Bool[Tensor, "batch places"]:
        return self.places.mask

    @property
    def layout(self) -> Layout:
        return self.places.layout

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, for runtimes that pass plain tensors; what follows from others is left out."""
        tensors = {"keys": self.keys, "values": self.values, "mask": self.mask}
        if self.places.parent is not None:
            tensors["parent"] = self.places.parent
        if self.larger is not None:
            tensors |= {f"larger/{name}": tensor for name, tensor in self.larger.tensors().items()}
        return tensors

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], layout: Layout) -> Prepared:
        """The inverse of `tensors`; the values stand for the states of the places."""
        values = tensors["values"]
        places = Places(
            values if values.dim() == 3 else values[:, 0], tensors["mask"], layout, None, tensors.get("parent")
        )
        prepared = cls.of(tensors["keys"], values, places)
        inner = {name.removeprefix("larger/"): part for name, part in tensors.items() if name.startswith("larger/")}
        return prepared.with_larger(LargerPlaces.from_tensors(inner)) if inner else prepared

    def select(self, rows: Int[Tensor, " chosen"]) -> Prepared:
        chosen = Prepared.of(self.keys[rows], self.values[rows], self.places.select(rows))
        chosen.product = self.product
        return chosen if self.larger is None else chosen.with_larger(self.larger.select(rows))


@dataclass
class LargerPlaces:
    """Prepared larger places (sentences), and the smaller ones (words) that each contains.

    numbers, real: (batch, larger, inside), for each larger place the numbers of the smaller ones inside it, and which
    of these are real; back: (batch, places), the index of each smaller place in the flattened `numbers`.
    """

    prepared: Prepared
    numbers: Int[Tensor, "batch larger inside"]
    real: Bool[Tensor, "batch larger inside"]
    back: Int[Tensor, "batch places"]

    def tensors(self) -> dict[str, Tensor]:
        own = {"numbers": self.numbers, "real": self.real, "back": self.back}
        return own | {f"prepared/{name}": tensor for name, tensor in self.prepared.tensors().items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> LargerPlaces:
        """The inverse of `tensors`."""
        inner = {name.removeprefix("prepared/"): part for name, part in tensors.items() if name.startswith("prepared/")}
        prepared = Prepared.from_tensors(inner, Layout("sentences"))
        return cls(prepared, tensors["numbers"], tensors["real"], tensors["back"])

    def select(self, rows: Int[Tensor, " chosen"]) -> LargerPlaces:
        return LargerPlaces(self.prepared.select(rows), self.numbers[rows], self.real[rows], self.back[rows])

    def folded(self, heads: int) -> LargerPlaces:
        """The same with heads as rows of the batch."""
        if self.prepared.folded is None:
            raise ValueError("these larger places were not prepared for heads")
        numbers, real, back = (repeat_rows(part, heads) for part in (self.numbers, self.real, self.back))
        return LargerPlaces(self.prepared.folded, numbers, real, back)


def extent_of(mask: Bool[Tensor, "batch places"], layout: Layout) -> Int[Tensor, "batch axes"]:
    """How far the real places reach: their number in a line; rows and columns on a grid.

    >>> extent_of(torch.tensor([[True, True, False, False]]), Layout("grid", (2, 2)))
    tensor([[1, 2]])
    """
    if layout.kind != "grid":
        return mask.sum(1, keepdim=True)
    grid = mask.view(mask.shape[0], *layout.shape)
    return torch.stack([grid.any(2).sum(1), grid.any(1).sum(1)], dim=1)


@dataclass
class Candidates:
    """The places that a score is computed for: all of an input's, or a window for each query.

    keys: (batch, places, size); past: (batch, queries, all places), the sum of earlier looks, for a score that
    remembers them; numbers: (batch, places), the number of each candidate in the input, None: all places in order;
    layout: that of the whole input; product: multiplies queries with weights. With windows the queries are folded into
    the batch, so that there is one per row.
    """

    keys: Float[Tensor, "batch places size"]
    layout: Layout
    numbers: Int[Tensor, "batch places"] | None = None
    past: Float[Tensor, "batch queries _"] | None = None
    product: Product = plain_product


@dataclass
class Look:
    """The result of an attention, for one or several queries; rows and steps are the first axes, however many.

    context: (..., value); weights, energies: (..., candidates), or (..., heads, candidates); numbers: like weights,
    the places that the candidates are, None: all places in order; places: how many places the input has;
    place, place_log_prob: (...) or (..., heads), of a hard choice the chosen place and its log-probability;
    past: (..., places), what the score remembers after the look; heads: how many, 0: there is no such axis;
    by_score: no gradient passes through the choice, so that it is learned from `place_log_prob` alone;
    larger, larger_energies: (..., larger places), of two-level attention the weights and energies of the larger places;
    query, head_contexts: (..., [heads,] size), what asked, and of heads the context of each before W_o joins them.
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
    query: Float[Tensor, "*looks query"] | None = None
    head_contexts: Float[Tensor, "*looks part"] | None = None

    def by_head(self) -> Float[Tensor, "*rows places"]:
        """The weights over all places of the input, zero where none was a candidate: (..., [heads,] places)."""
        return scatter_to_places(self.weights, self.numbers, self.places)

    def dense(self) -> Float[Tensor, "*rows places"]:
        """The weights over all places, the mean over heads: (..., places)."""
        weights = self.by_head()
        return weights.mean(-2) if self.heads else weights

    def added_to(self, past: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
        """The sum of earlier looks with this one added; for a look without heads."""
        if self.numbers is None:
            return past + self.weights
        return past.scatter_add(-1, self.numbers, self.weights.to(past.dtype))

    def energies_by_head(self) -> Float[Tensor, "*rows places"]:
        """The energies of all places, minus infinity where none was a candidate: (..., [heads,] places)."""
        if self.energies is None:
            raise ValueError("this look did not keep its energies")
        return scatter_to_places(self.energies, self.numbers, self.places, empty=-torch.inf)

    def dense_energies(self) -> Float[Tensor, "*rows places"]:
        """The energies of all places, the mean over heads: (..., places)."""
        energies = self.energies_by_head()
        return mean_over_heads(energies) if self.heads else energies

    def map(self, change: Callable[[Tensor], Tensor]) -> Look:
        """The same look with every tensor changed alike: rows folded, selected or cut."""
        tensors = {part.name: getattr(self, part.name) for part in fields(self)}
        changed: dict[str, Any] = {name: change(part) for name, part in tensors.items() if isinstance(part, Tensor)}
        return replace(self, **changed)

    def trimmed(self) -> Look:
        """The same without what only a single step needs, some of it as large as the input."""
        return replace(self, energies=None, past=None, larger_energies=None, query=None, head_contexts=None)

    @classmethod
    def stacked(cls, looks: Sequence[Look]) -> Look:
        """The looks of successive steps as one, (rows, steps, ...), trimmed."""
        first, together = looks[0].trimmed(), dict[str, Any]()
        for name in ("context", "weights", "numbers", "place", "place_log_prob", "larger"):
            if getattr(first, name) is not None:
                together[name] = torch.stack([getattr(look, name) for look in looks], dim=1)
        return replace(first, **together)


def mean_over_heads(energies: Float[Tensor, "*rows heads places"]) -> Float[Tensor, "*rows places"]:
    """The mean energy of each place over the heads that have it as a candidate, minus infinity where none has.

    Heads with windows of their own have different candidates.

    >>> mean_over_heads(torch.tensor([[1.0, 2.0, -torch.inf], [3.0, -torch.inf, -torch.inf]]))
    tensor([2., 2., -inf])
    """
    there = energies > -torch.inf
    heads = there.sum(-2)
    return torch.where(heads > 0, energies.masked_fill(~there, 0.0).sum(-2) / heads.clamp(min=1), -torch.inf)


def scatter_to_places(
    weights: Float[Tensor, "*rows candidates"],
    numbers: Int[Tensor, "*rows candidates"] | None,
    places: int,
    *,
    empty: float = 0.0,
) -> Float[Tensor, "*rows places"]:
    """The value of each candidate at its place, `empty` elsewhere.

    A candidate beyond the input has weight 0 or energy -inf, and so changes nothing at the place it is clamped to.

    >>> scatter_to_places(torch.tensor([[0.5, 0.5]]), torch.tensor([[2, 1]]), 4)
    tensor([[0.0000, 0.5000, 0.5000, 0.0000]])
    """
    if numbers is None:
        return weights
    out = weights.new_full((*weights.shape[:-1], places), empty)
    return out.scatter_add(-1, numbers, weights) if empty == 0 else out.scatter_reduce(-1, numbers, weights, "amax")


@dataclass
class LookEquations:
    """How a query becomes a context, in the notation of the specification.

    score: the energy of a place; place: what is looked at, 'h_j', or 'w_ij' of words; larger: of two-level attention,
    how sentences are scored; heads: what each head has as query, keys and values; window: which places are candidates,
    nothing where all are; weights: how energies become weights; context: what the weights become;
    given: what the model's probabilities are conditioned on beside its input, where a place is drawn.
    """

    score: str
    weights: list[str]
    context: str
    window: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    place: str = "h_j"
    larger: str = ""
    given: str = ""
