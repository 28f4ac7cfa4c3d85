"""Multi-head attention: several attentions side by side, each on its own projection of query and places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention.attention import Attention
from seq2see.attention.records import Look, LookEquations, Prepared, mean_over_heads
from seq2see.attention.scopes import Positions
from seq2see.attention.scores import compute_keys
from seq2see.attention.self_attention import heads_problems
from seq2see.attention.two_level import TwoLevelAttention, group_by_parent
from seq2see.errors import UserError
from seq2see.memory import Places, View, repeat_rows
from seq2see.symbols import Symbols, default_symbols, prefixed, symbols_of


class MultiHead(nn.Module):
    """c = W_o [c^1; ..; c^H] + b_o, head i having the query W_q^i q, the keys W_k^i h_j and the values W_v^i h_j.

    The heads share one inner attention, whose queries and keys have size / heads numbers; with the score scaled-dot
    this is torch.nn.MultiheadAttention. Where no place is real the context is zero, without b_o.
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
        """The size of each head's queries, keys and values."""
        for setting, message in heads_problems(key, heads):
            raise UserError(f"attention.{setting}: {message}")
        return key // heads

    def prepare(self, places: Places) -> Prepared:
        """Compute once per input what does not depend on the query."""
        keys = compute_keys(self.inner.score, self._split(self.W_k(places.states)).flatten(0, 1))
        return Prepared.of(
            keys.unflatten(0, (-1, self.heads)), self._split(self.W_v(places.states)).contiguous(), places
        )

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries heads_places"] | None:
        """The sum of earlier looks of each head: (batch, queries, heads * places)."""
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
        """As in `Attention`; forced: weights of every head."""
        batch = query.shape[0]
        look: Look = self.inner(
            self._split(self.W_q(query)).flatten(0, 1),
            prepared.folded,
            **self._more_queries(query),
            positions=positions,
            past=None if past is None else self._split(past).flatten(0, 1),
            forced=None if forced is None else repeat_rows(forced, self.heads),
            generator=generator,
        )
        past = None if look.past is None else self._joined(look.past.unflatten(0, (batch, self.heads)))
        by_head: Look = look.map(lambda part: part.unflatten(0, (batch, self.heads)).transpose(1, 2))
        by_head.head_contexts = by_head.context
        by_head.context = self.W_o(by_head.context.flatten(2)) * (prepared.extent[:, None, :1] > 0)
        by_head.past = past
        by_head.heads = self.heads
        return by_head

    def equations(self) -> LookEquations:
        """How a query becomes a context, for `show`."""
        inner = self.inner.equations()
        return replace(
            inner,
            heads=[self._head_equation(inner.place, "of heads")],
            context=f"{inner.context} (of each of {self.heads} heads, joined by W_o)",
        )

    def _head_equation(self, place: str, symbols: str) -> str:
        keys = f"its part of W_q q + b_q as q, of W_k {place} + b_k as k_j"
        return f"each head has {keys}, and of W_v {place} + b_v as {place} ({symbols})"

    def parameter_symbols(self) -> Symbols:
        """Those of the projections are 'of heads'."""
        symbols = {
            key: replace(symbol, name=f"{symbol.name} of heads") for key, symbol in default_symbols(self).items()
        }
        return symbols | prefixed("inner", symbols_of(self.inner))

    def _more_queries(self, query: Float[Tensor, "batch queries query"]) -> dict[str, Tensor]:
        """Further queries of the inner attention, by the names of its arguments."""
        return {}

    def _split(self, vectors: Float[Tensor, "batch rows width"]) -> Float[Tensor, "batch heads rows part"]:
        parts: Tensor = vectors.unflatten(-1, (self.heads, -1))
        return parts.transpose(1, 2)

    def _joined(self, parts: Float[Tensor, "batch heads rows part"]) -> Float[Tensor, "batch rows width"]:
        return parts.transpose(1, 2).flatten(2)


class TwoLevelMultiHead(MultiHead):
    """Multi-head attention whose heads each look at words through sentences.

    Head i has its own projections of the query to sentences and of their states, `larger.W_q` and `larger.W_k`, beside
    those for words. The weights of a sentence are the mean over heads; so are its energies, over the heads that have it
    as a candidate.
    """

    def __init__(self, query: int, view: View, *, heads: int, inner: TwoLevelAttention):
        super().__init__(query, view.size, heads=heads, inner=inner)
        if view.inside is None:
            raise ValueError("these places are not part of larger ones")
        self.larger = nn.ModuleDict({"W_q": nn.Linear(query, view.size), "W_k": nn.Linear(view.inside.size, view.size)})

    def prepare(self, places: Places) -> Prepared:
        if places.inside is None:
            raise ValueError("these places are not part of larger ones")
        states = self._split(self.larger["W_k"](places.inside.states)).flatten(0, 1)
        keys = compute_keys(cast(TwoLevelAttention, self.inner).larger.score, states).unflatten(0, (-1, self.heads))
        sentences = Prepared.of(keys, states.unflatten(0, (-1, self.heads)), places.inside)
        return super().prepare(places).with_larger(group_by_parent(places, sentences))

    def forward(self, query: Float[Tensor, "batch queries query"], prepared: Prepared, **more: Any) -> Look:
        """As in `Attention`, over words; forced: weights of words, in every head."""
        look: Look = super().forward(query, prepared, **more)
        if look.larger is None or look.larger_energies is None:
            raise ValueError("this look has no larger places")
        return replace(look, larger=look.larger.mean(2), larger_energies=mean_over_heads(look.larger_energies))

    def equations(self) -> LookEquations:
        equations = super().equations()
        sentences = "for sentences its part of W_q q + b_q as q, of W_k h_i + b_k as k_i (of heads, sentences)"
        return replace(equations, heads=[self._head_equation(equations.place, "of heads, words"), sentences])

    def parameter_symbols(self) -> Symbols:
        """The projections of words and of sentences; W_o belongs to both."""
        symbols = super().parameter_symbols()
        for key, symbol in symbols.items():
            if key.startswith("larger."):
                symbols[key] = symbol.inside("sentences")
            elif key.startswith("W_") and not key.startswith("W_o"):
                symbols[key] = symbol.inside("words")
        return symbols

    def _more_queries(self, query: Float[Tensor, "batch queries query"]) -> dict[str, Tensor]:
        return {"larger_query": self._split(self.larger["W_q"](query)).flatten(0, 1)}
