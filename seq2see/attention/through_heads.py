"""Several looks at words through their sentences, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention.asking import keys_of
from seq2see.attention.heads import MultiHead
from seq2see.attention.holding import laid_out
from seq2see.attention.records import Look, Prepared, mean_of_asked
from seq2see.attention.through import Through
from seq2see.memory import Places, View


class ThroughHeads(MultiHead):
    """c = W_o [c^1; ..; c^H] + b_o, each head looking at words through sentences by itself.

    Head i asks sentences with a projection of the query and of their states of its own, `larger.W_q` and `larger.W_k`,
    beside those of the words. What is told of a sentence is the mean over heads, of energies over those that asked it.
    """

    def __init__(self, query: int, view: View, *, heads: int, inner: Through):
        super().__init__(query, view.size, heads=heads, inner=inner)
        if view.inside is None:
            raise ValueError("these places lie inside no larger ones")
        self.larger = nn.ModuleDict({"W_q": nn.Linear(query, view.size), "W_k": nn.Linear(view.inside.size, view.size)})

    def prepare(self, places: Places) -> Prepared:
        if places.inside is None:
            raise ValueError("these places lie inside no larger ones")
        states = self._split(self.larger["W_k"](places.inside.states)).flatten(0, 1)
        keys = keys_of(cast(Through, self.inner).larger.score, states).unflatten(0, (-1, self.heads))
        above = Prepared.of(keys, states.unflatten(0, (-1, self.heads)), places.inside)
        return super().prepare(places).held_by(laid_out(places, above))

    def forward(self, query: Float[Tensor, "batch queries query"], prepared: Prepared, **more: Any) -> Look:
        """As one attention does, over words; `forced` weights are those of words and hold for every head."""
        look: Look = super().forward(query, prepared, **more)
        if look.larger is None or look.larger_energies is None:
            raise ValueError("this look went through no larger places")
        return replace(look, larger=look.larger.mean(2), larger_energies=mean_of_asked(look.larger_energies))

    def _further(self, query: Float[Tensor, "batch queries query"]) -> dict[str, Tensor]:
        return {"above": self._split(self.larger["W_q"](query)).flatten(0, 1)}
