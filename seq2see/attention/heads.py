"""Several looks at once, each at its own projection of query and places, joined again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention.attention import Attention
from seq2see.attention.records import Look, Prepared, mean_over_heads
from seq2see.attention.scopes import Positions
from seq2see.attention.scores import compute_keys
from seq2see.attention.two_level import TwoLevelAttention, group_by_parent
from seq2see.errors import UserError
from seq2see.memory import Places, View


class MultiHead(nn.Module):
    """c = W_o [c^1; ..; c^H] + b_o, head i looking with W_q^i q at the keys W_k^i h_j and the values W_v^i h_j.

    The heads share one score (and scope), which sees queries and keys of size / heads numbers; with scaled-dot this is
    torch.nn.MultiheadAttention. Where no place is real the context is zero, b_o included.
    """

    def __init__(self, query: int, key: int, *, heads: int, inner: Attention | TwoLevelAttention):
        super().__init__()
        self.heads, self.inner = heads, inner
        self.W_q = nn.Linear(query, key)
        self.W_k = nn.Linear(key, key)
        self.W_v = nn.Linear(key, key)
        self.W_o = nn.Linear(key, key)

    @staticmethod
    def head_size(key: int, heads: int) -> int:
        """Numbers in each head's queries, keys and values."""
        if key % heads:
            raise UserError(f"attention.heads: {heads} heads need places whose size they divide, got {key}")
        return key // heads

    def prepare(self, places: Places) -> Prepared:
        keys = compute_keys(self.inner.score, self._split(self.W_k(places.states)).flatten(0, 1))
        return Prepared.of(
            keys.unflatten(0, (-1, self.heads)), self._split(self.W_v(places.states)).contiguous(), places
        )

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries heads_places"] | None:
        """Each head remembers its own looks: (batch, queries, heads * places)."""
        first = self.inner.begin(prepared, queries)
        return None if first is None else first.repeat(1, 1, self.heads)

    def forward(
        self,
        query: Float[Tensor, "batch queries query"],
        prepared: Prepared,
        *,
        positions: Positions = 0,
        past: Float[Tensor, "batch queries heads_places"] | None = None,
        forced: Float[Tensor, "batch queries places"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Look:
        """As one attention does; `forced` weights hold for every head."""
        batch = len(query)
        look: Look = self.inner(
            self._split(self.W_q(query)).flatten(0, 1),
            prepared.folded,
            **self._further(query),
            positions=positions,
            past=None if past is None else self._split(past).flatten(0, 1),
            forced=None if forced is None else forced.repeat_interleave(self.heads, 0),
            generator=generator,
        )
        remembered = None if look.past is None else self._joined(look.past.unflatten(0, (batch, self.heads)))
        apart: Look = look.map(lambda part: part.unflatten(0, (batch, self.heads)).transpose(1, 2))
        apart.context = self.W_o(apart.context.flatten(2)) * (prepared.extent[:, None, :1] > 0)
        apart.past = remembered
        apart.heads = self.heads
        return apart

    def _further(self, query: Float[Tensor, "batch queries query"]) -> dict[str, Tensor]:
        """What else the heads ask with, by its name."""
        return {}

    def _split(self, vectors: Float[Tensor, "batch rows width"]) -> Float[Tensor, "batch heads rows part"]:
        parts: Tensor = vectors.unflatten(-1, (self.heads, -1))
        return parts.transpose(1, 2)

    def _joined(self, parts: Float[Tensor, "batch heads rows part"]) -> Float[Tensor, "batch rows width"]:
        return parts.transpose(1, 2).flatten(2)


# ---------------- Several looks at words through their sentences, side by side


class TwoLevelMultiHead(MultiHead):
    """c = W_o [c^1; ..; c^H] + b_o, each head looking at words through sentences by itself.

    Head i asks sentences with a projection of the query and of their states of its own, `larger.W_q` and `larger.W_k`,
    beside those of the words. What is told of a sentence is the mean over heads, of energies over those that asked it.
    """

    def __init__(self, query: int, view: View, *, heads: int, inner: TwoLevelAttention):
        super().__init__(query, view.size, heads=heads, inner=inner)
        if view.inside is None:
            raise ValueError("these places lie inside no larger ones")
        self.larger = nn.ModuleDict({"W_q": nn.Linear(query, view.size), "W_k": nn.Linear(view.inside.size, view.size)})

    def prepare(self, places: Places) -> Prepared:
        if places.inside is None:
            raise ValueError("these places lie inside no larger ones")
        states = self._split(self.larger["W_k"](places.inside.states)).flatten(0, 1)
        keys = compute_keys(cast(TwoLevelAttention, self.inner).larger.score, states).unflatten(0, (-1, self.heads))
        above = Prepared.of(keys, states.unflatten(0, (-1, self.heads)), places.inside)
        return super().prepare(places).with_larger(group_by_parent(places, above))

    def forward(self, query: Float[Tensor, "batch queries query"], prepared: Prepared, **more: Any) -> Look:
        """As one attention does, over words; `forced` weights are those of words and hold for every head."""
        look: Look = super().forward(query, prepared, **more)
        if look.larger is None or look.larger_energies is None:
            raise ValueError("this look went through no larger places")
        return replace(look, larger=look.larger.mean(2), larger_energies=mean_over_heads(look.larger_energies))

    def _further(self, query: Float[Tensor, "batch queries query"]) -> dict[str, Tensor]:
        return {"above": self._split(self.larger["W_q"](query)).flatten(0, 1)}
