"""The decoder without a recurrence: each step looks back at the steps before it, and at the places of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from seq2see.attention import Look, SelfAttention
from seq2see.decoders.base import Conditions, Decoder, InitialState, decoders, join_summaries, joined_size
from seq2see.decoders.cross_attention import Context, CrossAttention
from seq2see.decoders.records import Ready, State, Step, layer_name, layered
from seq2see.embeddings import Embedding, OneHot
from seq2see.encoders.layers import FeedForward
from seq2see.encoders.positional_input import TokenInput
from seq2see.memory import Memory, View
from seq2see.settings.attention import AttentionSettings
from seq2see.settings.decoders import DecoderSettings

# ---------------- One layer of a Transformer's decoder

Cache = tuple[Tensor, ...]
"""Keys and values of the steps so far, each (rows, heads, steps, part)."""


class DecoderLayer(nn.Module):
    """x = x + self(norm(x)); x = x + W_c look(norm(x)); x = x + feed(norm(x))

    W_c brings contexts to the layer's size; heads have a W_o of their own, and where that does it there is no W_c.
    alone: there is one step, with none before it, so that there is no self(norm(x)) to learn.
    """

    def __init__(
        self,
        settings: DecoderSettings,
        attention: AttentionSettings,
        views: Mapping[str, View],
        *,
        alone: bool = False,
    ):
        super().__init__()
        size = settings.size
        self.dropout, self.memory = settings.dropout, settings.memory
        self.norm_1 = None if alone else nn.LayerNorm(size)
        rotary = settings.positions == "rotary"
        self.inward = None if alone else SelfAttention(size, heads=settings.heads, rotary=rotary)
        self.looking = CrossAttention(attention, query=size, views=views)
        self.norm_2 = nn.LayerNorm(size) if views else None
        needed = attention.heads == 1 or self.looking.size != size
        self.W_c = nn.Linear(self.looking.size, size) if views and needed else None
        self.norm_3 = nn.LayerNorm(size)
        self.feed = FeedForward(size, settings.feedforward)

    def empty(self, rows: int) -> Cache:
        """The cache before the first step."""
        if self.inward is None:
            return ()
        none = self.inward.W_k.weight.new_zeros(rows, self.inward.heads, 0, self.inward.size // self.inward.heads)
        return none, none

    def forward(
        self,
        states: Float[Tensor, "rows steps size"],
        cache: Cache,
        look: Callable[[Tensor], Tensor] | None,
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "rows steps size"], Cache, Float[Tensor, "rows heads steps _"] | None]:
        """New steps after those in the cache, each seeing the ones up to itself; `look` gives contexts of queries.

        What comes back to be kept is what the next step may see: all of them, or the last `memory`.
        With `tell` also how each of them looked at those up to itself.
        """
        weights = None
        if self.norm_1 is not None and self.inward is not None:
            normal = self.norm_1(states)
            new = self.inward.keys_and_values(normal)
            keys, values = (torch.cat([old, one], dim=2) for old, one in zip(cache, new, strict=True))
            mask = _earlier(states.shape[1], keys, self.memory)
            found, weights = self.inward(normal, keys, values, mask=mask, need_weights=need_weights)
            states = states + self._dropped(found)
            seen = self.memory or keys.shape[2]
            cache = keys[:, :, -seen:], values[:, :, -seen:]
        if look is not None and self.norm_2 is not None:
            context = look(self.norm_2(states))
            states = states + self._dropped(context if self.W_c is None else self.W_c(context))
        return states + self._dropped(self.feed(self.norm_3(states))), cache, weights

    def _dropped(self, states: Tensor) -> Tensor:
        return dropout(states, self.dropout, self.training)


def _earlier(steps: int, keys: Tensor, memory: int | None) -> Bool[Tensor, "1 steps places"] | None:
    """Which of all steps each of the new ones may see: itself and those before it, of these the last `memory` where
    there is a limit. None: the only new one sees all that is there."""
    every = keys.shape[2]
    if steps == 1:
        return None
    seen = torch.ones(1, steps, every, dtype=torch.bool, device=keys.device).tril(every - steps)
    return seen if memory is None else seen.triu(every - steps - memory)


Asking = Callable[[int, Tensor], Tensor]
"""(number of the layer, queries (rows, steps, size)) -> contexts (rows, steps, size)"""


@decoders.register("transformer")
class TransformerDecoder(Decoder):
    """x_t = sqrt(d) e(y_{t-1}) + p_t, then layer by layer: look at x_1 .. x_t, look at the places, think.

    A summary that starts the decoder joins the first symbol, where later steps can look it up as long as their memory
    reaches back to it; one that enters every step joins every symbol. Each layer has its own attention over the inputs;
    the last one's looks are the decoder's, those below are told beside them. `features` is s_t = norm(x_t).

    Without symbols to read (a label) it is a decoder of one step: x = s_0, from the summaries or learned, asks in layer
    after layer. There is nothing before it to look back at, so that its layers look at the places and think.
    """

    direct = True

    def __init__(self, settings: DecoderSettings, attention: AttentionSettings, conditions: Conditions):
        super().__init__(settings, attention, conditions)
        embedding, every = conditions.embedding, conditions.every
        self.one_step = embedding is None
        size = self.features_size = settings.size
        self.dropout = settings.dropout
        if embedding is not None:
            self.entrance = TokenInput(
                embedding,
                size=size,
                positions=settings.positions,
                longest=settings.longest,
                dropout=settings.dropout,
                key="decoder",
            )
        self.layers = nn.ModuleList(
            DecoderLayer(settings, attention, conditions.looks, alone=self.one_step) for _ in range(settings.layers)
        )
        self.norm = nn.LayerNorm(size)
        self.join, self.every_names = settings.join, tuple(every)
        self.start = (
            InitialState(conditions.start, size=size, layers=1, states=1, by=settings.start_by, join=settings.join)
            if conditions.start or self.one_step
            else None
        )
        self.W_h = nn.Linear(joined_size(list(every.values()), settings.join), size, bias=False) if every else None

    @property
    def blocks(self) -> list[DecoderLayer]:
        """From the bottom layer to the top one."""
        return list(cast("Iterable[DecoderLayer]", self.layers))

    @property
    def looking(self) -> CrossAttention:  # type: ignore[override]
        """The last layer's."""
        return self.blocks[-1].looking

    @property
    def embedding(self) -> Embedding | OneHot:
        return self.entrance.embedding

    def prepare(self, memory: Memory) -> Ready:
        """What is computed once per input: every layer's keys, and what the summaries add to symbols."""
        every = None
        if self.W_h is not None:
            every = self.W_h(join_summaries([memory.summaries[name] for name in self.every_names], self.join))
        start = self.start(memory.summaries, memory.rows) if self.start is not None else []
        *lower, last = [layer.looking.prepare(memory) for layer in self.blocks]
        return Ready(memory.rows, memory, last, start, every, lower)

    def begin(self, ready: Ready, *, width: int = 1) -> State:
        """Nothing is written yet: empty caches, `width` rows for each input."""
        rows = ready.rows * width
        pairs = zip(self.blocks, [*ready.lower, ready.looks], strict=True)
        *lower, last = [layer.looking.begin(prepared, width) for layer, prepared in pairs]
        return State(rows, width=width, past=layered(last, lower), caches=[one.empty(rows) for one in self.blocks])

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        """Read one symbol (none for a label), look back at those before it, and at the places.

        `forced` weights of an input hold in every layer; those of one layer alone are given as `name.layer-1`.
        """
        if self.one_step != (token is None):
            wanted = "no symbol" if self.one_step else "a symbol at each step"
            raise TypeError(f"this decoder reads {wanted}, got {'None' if token is None else 'one'}")
        prepared, seen = [*ready.lower, ready.looks], list[Context]()
        given = forced or {}

        def look(number: int, queries: Tensor) -> Tensor:
            names = {name: self._name(name, number) for name in prepared[number]}
            one: Context = self.blocks[number].looking(
                queries[:, 0],
                prepared[number],
                position=state.position,
                past={name: state.past[own] for name, own in names.items() if own in state.past},
                forced={
                    name: given[key] for name, own in names.items() if (key := own if own in given else name) in given
                },
                generator=generator,
            )
            seen.append(one)
            return one.context[:, None]

        tokens = None if token is None else token[:, None]
        features, caches, inward = self._climb(ready, state, tokens, look, need_weights=ready.maps)
        *pasts, past = [one.past for one in seen] or [{}]
        *lower, last = [one.looks for one in seen] or [{}]
        after = replace(state, position=state.position + 1, caches=caches, past=layered(past, pasts))
        return Step(after, features[:, 0], last, lower, [_at(after.position, weights[:, :, 0]) for weights in inward])

    def teach(self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"]) -> Step:
        """All steps of a target at once, each seeing those before it; one by one where a look remembers the last."""
        if state.past or self.one_step:
            return super().teach(ready, state, tokens)
        prepared, looks = [*ready.lower, ready.looks], list[dict[str, Look]]()

        def look(number: int, queries: Tensor) -> Tensor:
            seen = self.blocks[number].looking.all_at_once(queries, prepared[number], position=state.position)
            looks.append(seen.looks)
            return seen.context

        features, caches, _ = self._climb(ready, state, tokens, look)
        *lower, last = looks or [{}]
        after = replace(state, position=state.position + tokens.shape[1], caches=caches)
        return Step(after, features, last, lower)

    def _climb(
        self,
        ready: Ready,
        state: State,
        tokens: Int[Tensor, "rows steps"] | None,
        look: Asking,
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "rows steps size"], list[Cache], list[Float[Tensor, "rows heads steps _"]]]:
        """From symbols to features, and what is kept of these steps for later ones: the heart of `step` and `teach`.

        With `tell` also, for each layer, how these steps looked at the symbols up to theirs.
        """
        states = self._entered(ready, state, tokens)
        caches, inward = list[Cache](), list[Tensor]()
        for number, (layer, cache) in enumerate(zip(self.blocks, state.caches, strict=True)):
            asking = partial(look, number) if layer.looking else None
            states, kept, weights = layer(states, cache, asking, need_weights=need_weights)
            caches.append(kept)
            if weights is not None:
                inward.append(weights)
        return dropout(self.norm(states), self.dropout, self.training), caches, inward

    def _entered(
        self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"] | None
    ) -> Float[Tensor, "rows steps size"]:
        """Symbols as vectors, joined by what summaries say; without symbols what these say alone."""
        if tokens is None:
            return ready.start[0][0].repeat_interleave(state.width, 0)[:, None]
        states: Tensor = self.entrance(tokens, first=state.position)
        if ready.every is not None:
            states = states + ready.every.repeat_interleave(state.width, 0)[:, None]
        if ready.start and state.position == 0:
            first = ready.start[0][0].repeat_interleave(state.width, 0)[:, None]
            states = torch.cat([states[:, :1] + first, states[:, 1:]], dim=1)
        return states

    def _name(self, name: str, number: int) -> str:
        """What a layer's looks at an input are called."""
        return name if number == len(self.layers) - 1 else layer_name(name, number)


def _at(steps: int, weights: Float[Tensor, "rows heads seen"]) -> Float[Tensor, "rows heads steps"]:
    """Weights of the last of so many steps, at those they belong to: zero at what lies too far back to be seen."""
    return pad(weights, (max(steps - weights.shape[-1], 0), 0))
