"""Attention = candidates -> score -> mask -> normalise -> choose -> context, from parts that can be replaced."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2see.attention.choices import Chosen, Soft
from seq2see.attention.normalisers import Normaliser, masked, precise, softmax
from seq2see.attention.records import Candidates, Look, Prepared, scatter_to_places
from seq2see.attention.scopes import Global, Positions, Scope, Window, fold
from seq2see.attention.scores import Score, Static, compute_energies, compute_keys
from seq2see.memory import Places


class Attention(nn.Module):
    """a_t = softmax over real places of score(q_t, h_j) / temperature; c_t = sum_j a_tj h_j.

    >>> from seq2see.attention.scores import Dot
    >>> look = Attention(Dot(2, 2))
    >>> places = Places(torch.eye(2)[None], torch.tensor([[True, True]]))
    >>> look(torch.zeros(1, 1, 2), look.prepare(places)).context
    tensor([[[0.5000, 0.5000]]])
    """

    def __init__(
        self,
        score: Score,
        *,
        scope: Scope | None = None,
        normalise: Normaliser = softmax,
        choice: nn.Module | None = None,
        temperature: float = 1.0,
    ):
        super().__init__()
        self.score = score
        self.scope = scope if scope is not None else Global()
        self.choice = choice if choice is not None else Soft()
        self.normalise = normalise
        self.temperature = temperature

    def prepare(self, places: Places) -> Prepared:
        return Prepared.of(compute_keys(self.score, places.states), places.states, places)

    def begin(self, prepared: Prepared, queries: int) -> Float[Tensor, "batch queries places"] | None:
        """The sum of earlier looks before the first one, for so many queries per input; None: the score has no use."""
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
        """Look once for each query. `forced` weights, where they are not NaN, take the place of the model's own.

        positions: the number of the step; past: the sum of earlier looks, not given: there were none.
        """
        past = past if past is not None else self.begin(prepared, query.shape[1])
        window = self.scope.window(query, prepared, positions)
        if window is None:
            look = self._everywhere(query, prepared, past=past, generator=generator)
        else:
            look = self._within(query, prepared, window, past=past, generator=generator)
        if forced is not None:
            look = forced_look(look, prepared.values, forced)
        if past is not None:
            look.past = look.added_to(past)
        return look

    def weigh(self, energies: Tensor, mask: Tensor) -> Tensor:
        """a_t of energies, over the places that the mask leaves."""
        scaled = energies if self.temperature == 1.0 else energies / self.temperature
        return masked(self.normalise, scaled, mask)

    def _everywhere(
        self, query: Tensor, prepared: Prepared, *, past: Tensor | None, generator: torch.Generator | None
    ) -> Look:
        energies = compute_energies(self.score, query, Candidates(prepared.keys, prepared.layout, past=past))
        weights = self.weigh(energies, prepared.mask[:, None])
        chosen: Chosen = self.choice(weights, generator=generator)
        context = prepared.value_gather.mean(chosen.shares)
        places = prepared.mask.shape[1]
        return Look(
            context,
            weights,
            energies.masked_fill(~prepared.mask[:, None], -torch.inf),
            places,
            place=chosen.place,
            place_log_prob=chosen.log_prob,
            by_score=chosen.by_score,
        )

    def _within(
        self,
        query: Tensor,
        prepared: Prepared,
        window: Window,
        *,
        past: Tensor | None,
        generator: torch.Generator | None,
    ) -> Look:
        """Every query has candidates of its own, so each becomes a row of the batch with one query."""
        batch, queries, width = window.numbers.shape
        keys, values = fold(prepared, window)
        remembered = None if past is None else past.reshape(batch * queries, 1, -1)
        candidates = Candidates(keys, prepared.layout, window.numbers.flatten(0, 1), remembered)
        energies = compute_energies(self.score, query.reshape(batch * queries, 1, -1), candidates)
        energies = energies.view(batch, queries, width)
        if window.bias is not None:
            energies = energies + window.bias.to(energies.dtype)
        weights = self.weigh(energies, window.real)
        chosen: Chosen = self.choice(weights, generator=generator)
        shares = chosen.shares.reshape(batch * queries, 1, width).to(values.dtype)
        context = torch.bmm(shares, values).view(batch, queries, -1)
        place = None if chosen.place is None else window.numbers.gather(-1, chosen.place[..., None]).squeeze(-1)
        shown = energies.masked_fill(~window.real, -torch.inf)
        places = prepared.mask.shape[1]
        return Look(context, weights, shown, places, window.numbers, place, chosen.log_prob, by_score=chosen.by_score)


def forced_look(look: Look, values: Tensor, forced: Tensor) -> Look:
    """The look as the caller wants it; rows that are NaN stay as they were."""
    free = forced.isnan()
    weights = torch.where(free, look.dense(), forced)
    given = torch.bmm(forced.nan_to_num().to(values.dtype), values)
    context = torch.where(free.all(-1, keepdim=True), look.context, given)
    energies = (
        None if look.energies is None else scatter_to_places(look.energies, look.numbers, look.places, empty=-torch.inf)
    )
    place, log_prob = look.place, look.place_log_prob
    if place is not None and log_prob is not None:
        told = ~free.all(-1)
        place = torch.where(told, forced.nan_to_num().argmax(-1), place)
        own = look.dense().gather(-1, place[..., None]).squeeze(-1)
        log_prob = torch.where(told, own.clamp(min=torch.finfo(own.dtype).tiny).log(), log_prob)
    return Look(context, weights, energies, look.places, None, place, log_prob, by_score=look.by_score)


# ---------------- Several vectors as one, by an attention that nobody asks


class Pooling(nn.Module):
    """s = sum_j a_j h_j, a = softmax_j(u . tanh(W h_j + b)): the look of hierarchical attention.

    It is the score `static`, which is additive without its query term.
    """

    def __init__(self, size: int, *, hidden: int):
        super().__init__()
        self.look = Attention(Static(0, size, hidden))

    def forward(
        self, states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> tuple[Float[Tensor, "batch size"], Float[Tensor, "batch places"]]:
        """The pooled vector of each row, zeros where nothing is real, and the weights."""
        nobody = states.new_zeros(len(states), 1, 0)
        look = self.look(nobody, self.look.prepare(Places(states, mask)))
        return look.context.squeeze(1), look.weights.squeeze(1)
