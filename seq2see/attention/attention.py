"""Attention = candidates -> score -> mask -> normalise -> choose -> context, each a part that can be replaced."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2see.attention.choices import Choice, Chosen, Soft
from seq2see.attention.normalisers import Normaliser, Softmax, masked, precise
from seq2see.attention.records import Candidates, Look, LookEquations, Prepared
from seq2see.attention.scopes import Global, Positions, Scope, Window, fold
from seq2see.attention.scores import Score, Static, compute_energies, compute_keys
from seq2see.memory import Places
from seq2see.symbols import Symbol, Symbols, prefixed, symbols_of


class Attention(nn.Module):
    """a_t = softmax over real places of score(q_t, h_j) / temperature; c_t = sum_j a_tj h_j.

    >>> from seq2see.attention.scores import Dot
    >>> attention = Attention(Dot(2, 2))
    >>> places = Places(torch.eye(2)[None], torch.tensor([[True, True]]))
    >>> attention(torch.zeros(1, 1, 2), attention.prepare(places)).context
    tensor([[[0.5000, 0.5000]]])
    """

    def __init__(
        self,
        score: Score,
        *,
        scope: Scope | None = None,
        normalise: Normaliser | None = None,
        choice: Choice | None = None,
        temperature: float = 1.0,
    ):
        super().__init__()
        self.score = score
        self.scope = scope if scope is not None else Global()
        self.choice = choice if choice is not None else Soft()
        self.normalise = normalise if normalise is not None else Softmax()
        self.temperature = temperature

    def prepare(self, places: Places) -> Prepared:
        """Compute once per input what does not depend on the query."""
        return Prepared.of(compute_keys(self.score, places.states), places.states, places)

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries places"] | None:
        """The sum of earlier looks before the first one, zeros; None where the score does not remember any."""
        if not self.score.remembers:
            return None
        batch, places = prepared.mask.shape
        return precise(prepared.values.new_zeros(batch, queries, places))

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
        """One look for each query.

        positions: the number of the step; past: the sum of earlier looks, None: there were none; forced: weights that
        replace the model's own where they are not NaN; generator: draws hard choices.
        """
        past = past if past is not None else self.begin(prepared, query.shape[1])
        window = self.scope.window(query, prepared, positions)
        if window is None:
            look = self._look_everywhere(query, prepared, past=past, generator=generator)
        else:
            look = self._look_within(query, prepared, window, past=past, generator=generator)
        if forced is not None:
            look = force_weights(look, prepared.values, forced)
        if past is not None:
            look.past = look.added_to(past)
        look.query = query
        return look

    def weigh(self, energies: Tensor, mask: Tensor) -> Tensor:
        """The weights a_t of energies, over the places that the mask leaves."""
        scaled = energies if self.temperature == 1.0 else energies / self.temperature
        return masked(self.normalise, scaled, mask)

    def _look_everywhere(
        self, query: Tensor, prepared: Prepared, *, past: Tensor | None, generator: torch.Generator | None
    ) -> Look:
        candidates = Candidates(prepared.keys, prepared.layout, past=past, product=prepared.product)
        energies = compute_energies(self.score, query, candidates)
        weights = self.weigh(energies, prepared.mask[:, None])
        chosen: Chosen = self.choice(weights, generator=generator)
        return Look(
            prepared.value_gather.mean(chosen.shares),
            weights,
            energies.masked_fill(~prepared.mask[:, None], -torch.inf),
            prepared.mask.shape[1],
            place=chosen.place,
            place_log_prob=chosen.log_prob,
            by_score=chosen.by_score,
        )

    def _look_within(
        self,
        query: Tensor,
        prepared: Prepared,
        window: Window,
        *,
        past: Tensor | None,
        generator: torch.Generator | None,
    ) -> Look:
        """Each query has its own candidates, so each becomes a row of the batch with one query."""
        batch, queries, width = window.numbers.shape
        keys, values = fold(prepared, window)
        folded_past = None if past is None else past.reshape(batch * queries, 1, -1)
        candidates = Candidates(keys, prepared.layout, window.numbers.flatten(0, 1), folded_past, prepared.product)
        energies = compute_energies(self.score, query.reshape(batch * queries, 1, -1), candidates)
        energies = energies.view(batch, queries, width)
        if window.bias is not None:
            energies = energies + window.bias.to(energies.dtype)
        weights = self.weigh(energies, window.real)
        chosen: Chosen = self.choice(weights, generator=generator)
        shares = chosen.shares.reshape(batch * queries, 1, width).to(values.dtype)
        return Look(
            torch.bmm(shares, values).view(batch, queries, -1),
            weights,
            energies.masked_fill(~window.real, -torch.inf),
            prepared.mask.shape[1],
            window.numbers,
            place=None if chosen.place is None else window.numbers.gather(-1, chosen.place[..., None]).squeeze(-1),
            place_log_prob=chosen.log_prob,
            by_score=chosen.by_score,
        )

    def equations(self) -> LookEquations:
        """How a query becomes a context, for `show`."""
        window = self.scope.equations()
        over = "over these" if window else "over the real places"
        return LookEquations(
            self.score.equation(),
            window=window,
            weights=[f"{self.weight_equation()}, {over}"],
            context=self.choice.equation(),
            given=self.choice.conditioned_on,
        )

    def weight_equation(self, **names: str) -> str:
        """How energies become weights; names: those of `Normaliser.equation`."""
        divisor = "" if self.temperature == 1 else f" / {self.temperature:g}"
        return self.normalise.equation(divisor=divisor, **names)

    def parameter_symbols(self) -> Symbols:
        """Those of the score; those of the scope are 'of the window'."""
        window = {
            key: Symbol(f"{symbol.name} of the window", symbol.where) for key, symbol in symbols_of(self.scope).items()
        }
        return prefixed("score", symbols_of(self.score)) | prefixed("scope", window)


def force_weights(look: Look, values: Tensor, forced: Tensor) -> Look:
    """The look with the caller's weights; rows that are NaN stay as they are."""
    free = forced.isnan()
    weights = torch.where(free, look.dense(), forced)
    forced_context = torch.bmm(forced.nan_to_num().to(values.dtype), values)
    context = torch.where(free.all(-1, keepdim=True), look.context, forced_context)
    energies = None if look.energies is None else look.energies_by_head()
    place, log_prob = look.place, look.place_log_prob
    if place is not None and log_prob is not None:
        replaced = ~free.all(-1)
        place = torch.where(replaced, forced.nan_to_num().argmax(-1), place)
        own = look.dense().gather(-1, place[..., None]).squeeze(-1)
        log_prob = torch.where(replaced, own.clamp(min=torch.finfo(own.dtype).tiny).log(), log_prob)
    return Look(context, weights, energies, look.places, None, place, log_prob, by_score=look.by_score)


class Pooling(nn.Module):
    """s = sum_j a_j h_j, a = softmax_j(u . tanh(W h_j + b)): places as one vector, as in hierarchical attention.

    It is attention with the score `static`, which is additive without its query term. symbol: the index of W, b and u
    in the equations, 'w' for words.
    """

    def __init__(self, size: int, *, hidden: int, symbol: str = ""):
        super().__init__()
        self.look = Attention(Static(0, size, hidden))
        self.symbol = symbol

    def forward(
        self, states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> tuple[Float[Tensor, "batch size"], Float[Tensor, "batch places"]]:
        """The pooled vector of each row, zeros where no place is real, and the weights."""
        no_query = states.new_zeros(states.shape[0], 1, 0)
        look = self.look(no_query, self.look.prepare(Places(states, mask)))
        return look.context.squeeze(1), look.weights.squeeze(1)

    def parameter_symbols(self) -> Symbols:
        """W, b and u with their index."""
        names = {"W_k.weight": "W", "W_k.bias": "b", "v.weight": "u"}
        index = f"_{self.symbol}" if self.symbol else ""
        return {f"look.score.{key}": Symbol(f"{name}{index}") for key, name in names.items()}
