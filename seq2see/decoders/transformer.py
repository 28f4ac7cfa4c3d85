"""The Transformer decoder: each step attends to the steps before it and to the places of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from seq2see.attention import AttentionSettings, HeadNumbers, Look, SelfAttention
from seq2see.decoders.base import (
    Conditions,
    Decoder,
    InitialState,
    OwnAnswerSettings,
    SelfAttentionSettings,
    SymbolSettings,
    WrittenSettings,
    decoders,
    join_summaries,
    joined_equation,
    joined_size,
)
from seq2see.decoders.cross_attention import Context, CrossAttention
from seq2see.decoders.records import DecoderEquations, LayerStep, Ready, State, Step, layer_name, layered
from seq2see.dropout import dropout
from seq2see.embeddings import Embedding, OneHot
from seq2see.encoders.layers import FeedForward
from seq2see.encoders.positional_input import TokenInput
from seq2see.encoders.transformer_layers import check_heads, check_longest, check_unlimited
from seq2see.memory import Memory, View, repeat_rows
from seq2see.registry import Problem
from seq2see.settings.base import no_effect
from seq2see.symbols import Symbols, default_symbols, layer_symbols

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

Cache = tuple[Tensor, ...]
"""Keys and values of the steps so far, each (rows, heads, steps, part)."""


class DecoderLayer(nn.Module):
    """x = x + self(norm(x)); x = x + W_c c(norm(x)); x = x + feed(norm(x)), c being the context of cross-attention.

    W_c projects contexts to the layer's size; there is none where the W_o of heads gives that size already.
    alone: of a decoder of one step, where self(norm(x)) has nothing to attend to and is left out.
    """

    def __init__(
        self,
        settings: TransformerDecoderSettings | OwnAnswerSettings,
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
        empty = self.inward.W_k.weight.new_zeros(rows, self.inward.heads, 0, self.inward.size // self.inward.heads)
        return empty, empty

    def forward(
        self,
        states: Float[Tensor, "rows steps size"],
        cache: Cache,
        look: Callable[[Tensor], Tensor] | None,
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "rows steps size"], Cache, HeadNumbers | None]:
        """Steps after those in the cache, each of which sees the ones up to itself.

        look: the contexts of queries, from cross-attention. Returns the states, the cache of the steps that the next
        one may see (all of them, or the last `memory`), and if `need_weights` the numbers of self-attention.
        """
        numbers = None
        if self.norm_1 is not None and self.inward is not None:
            normal = self.norm_1(states)
            queries, *new = self.inward.project(normal)
            keys, values = (torch.cat(both, dim=2) for both in zip(cache, new, strict=True))
            mask = _causal_mask(states.shape[1], keys, self.memory)
            contexts, numbers = self.inward(queries, keys, values, mask=mask, need_weights=need_weights)
            states = states + self._dropout(contexts)
            cache = keys, values
            if self.memory is not None:
                cache = keys[:, :, -self.memory :], values[:, :, -self.memory :]
        if look is not None and self.norm_2 is not None:
            context = look(self.norm_2(states))
            states = states + self._dropout(context if self.W_c is None else self.W_c(context))
        return states + self._dropout(self.feed(self.norm_3(states))), cache, numbers

    def equation(self) -> str:
        """The layer, for `show`."""
        parts = []
        if self.inward is not None:
            reach = "" if self.memory is None else f", of these the last {self.memory + 1}"
            parts.append(f"x_t = x_t + self(norm(x))_t over x_1 .. x_t{reach}")
        if self.looking:
            parts.append(f"x_t = x_t + {'c_t' if self.W_c is None else 'W_c c_t + b_c'}")
        parts.append("x_t = x_t + W_2 relu(W_1 norm(x_t) + b_1) + b_2")
        return f"each layer: {';  '.join(parts)}"

    def _dropout(self, states: Tensor) -> Tensor:
        return dropout(states, self.dropout, self.training)


def _causal_mask(steps: int, keys: Tensor, memory: int | None) -> Bool[Tensor, "1 steps places"] | None:
    """The steps that each of the new ones may see: itself and those before it, at most the last `memory` of them.

    None where a single new step sees all there are.
    """
    total = keys.shape[2]
    if steps == 1:
        return None
    mask = torch.ones(1, steps, total, dtype=torch.bool, device=keys.device).tril(total - steps)
    return mask if memory is None else mask.triu(total - steps - memory)


LayerLook = Callable[[int, Tensor], Tensor]
"""Cross-attention: (number of the layer, queries (rows, steps, size)) -> contexts (rows, steps, size)."""


class TransformerDecoderSettings(SelfAttentionSettings, SymbolSettings, WrittenSettings):
    """Layers of self-attention over what was written; for labels, cross attention and feed-forward layers."""

    writes = ("text", "label")
    self_attends = True
    kind: Literal["transformer"] = Field("transformer", description="layers of multi-head self-attention")

    def layer_count(self, looks: int) -> int:
        return self.layers * (looks + 1)

    @property
    def most_steps(self) -> int | None:
        return self.longest if self.positions == "learned" else None

    @classmethod
    def stream_defaults(cls, *, stream: bool) -> dict[str, Any]:
        """A stream has no beginning that positions could be counted from, and no end: it sees so many symbols back."""
        if stream:
            return {"memory": MEMORY, "positions": "rotary"}
        return {key: cls.model_fields[key].default for key in ("memory", "positions")}

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if recipe.output.one_step:
            yield from self._unused_in_one_step(path)
            return
        yield from check_heads(self.size, self.heads, self.positions, path)
        yield from check_unlimited(self, self.positions, path)
        if recipe.data.stream:
            if self.positions not in ("rotary", "none"):
                message = f"{self.positions} ones are counted from a beginning, but a stream has none"
                yield Problem(f"{path}.positions", f"{message}; allowed: rotary, none", "stream-positions")
        elif self.positions == "learned":
            most = getattr(recipe.output, "max_length", 0)
            yield from check_longest(self.longest, f"{path}.longest", {"output.max_length": most}, least=2)
        searched = recipe.search.max_length
        if self.positions == "learned" and searched > self.longest >= 2:
            message = f"{searched} is more than {path}.longest {self.longest}"
            allowed = f"1 to {self.longest}, or a larger {path}.longest"
            yield Problem("search.max_length", f"{message}; allowed: {allowed}", "search-positions")
        yield from self._check_memory(recipe, path)

    def _check_memory(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        """Limited memory must not lose the start summary where that is all the decoder knows of its input."""
        if self.memory is None or not recipe.started_by or recipe.looked_at or recipe.fed_every_step:
            return
        summary = f"the summary of {', '.join(recipe.started_by)} joins <sos> alone"
        message = f"{self.memory} symbols back, and {summary}: a longer output would lose it"
        allowed = "attention, decoder.every_step, or none given (null), which sees all"
        yield Problem(f"{path}.memory", f"{message}; allowed: {allowed}", "memory")

    def _unused_in_one_step(self, path: str) -> Iterator[Problem]:
        """Settings of self-attention have no effect on a label, which is decoded in one step."""
        reason = "a label is decoded in one step, with no symbol before it to look at"
        keys = ["positions", "longest", "memory", "embedding", "tied"]
        yield from no_effect(self, path, keys, reason)
        yield from no_effect(self, path, ["heads"], f"{reason}; attention.heads are those of its looks")
        started = "there is one step: decoder.start says what it begins with"
        yield from no_effect(self, path, ["every_step"], started)


MEMORY = 256
"""Symbols before its own that a step sees in a stream, where the recipe does not state it."""


@decoders.register("transformer")
class TransformerDecoder(Decoder):
    """x_t = sqrt(d) e(y_{t-1}) + p_t, then in each layer self-attention to x_1 .. x_t, cross-attention, feed-forward.

    A summary that starts the decoder is added to the first symbol, which later steps attend to as long as their memory
    reaches back to it; one that enters every step is added to every symbol. Each layer has its own attention to the
    inputs: the looks of the last layer are the decoder's, those below are returned beside them. Features are
    s_t = norm(x_t).

    Without symbols to read (a label) it is a decoder of one step: x = s_0, from the summaries or learned, goes through
    layers of cross-attention and feed-forward.
    """

    Settings = TransformerDecoderSettings

    direct = True

    def __init__(
        self,
        settings: TransformerDecoderSettings | OwnAnswerSettings,
        attention: AttentionSettings,
        conditions: Conditions,
    ):
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
        """The layers from the bottom to the top."""
        return list(cast("Iterable[DecoderLayer]", self.layers))

    @property
    def looking(self) -> CrossAttention:  # type: ignore[override]
        """The cross-attention of the last layer."""
        return self.blocks[-1].looking

    @property
    def embedding(self) -> Embedding | OneHot:
        return self.entrance.embedding

    def prepare(self, memory: Memory) -> Ready:
        """Compute once per input: the keys of every layer, and what the summaries add to symbols."""
        every = None
        if self.W_h is not None:
            every = self.W_h(join_summaries([memory.summaries[name] for name in self.every_names], self.join))
        start = self.start(memory.summaries, memory.rows) if self.start is not None else []
        *lower, last = [layer.looking.prepare(memory) for layer in self.blocks]
        return Ready(memory.rows, memory, last, start, every, lower)

    def begin(self, ready: Ready, *, width: int = 1) -> State:
        """The state before the first step, with empty caches; `width` rows for each input."""
        rows = ready.rows * width
        pairs = zip(self.blocks, [*ready.lower, ready.looks], strict=True)
        *lower, last = [layer.looking.begin(prepared, width) for layer, prepared in pairs]
        return State(rows, width=width, past=layered(last, lower), caches=[layer.empty(rows) for layer in self.blocks])

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        """Read one symbol (none for a label) and attend to those before it and to the inputs.

        Forced weights of an input hold in every layer; those named `input.layer-1` hold in that layer alone.
        """
        if self.one_step != (token is None):
            wanted = "no symbol" if self.one_step else "a symbol at each step"
            raise TypeError(f"this decoder reads {wanted}, got {'None' if token is None else 'one'}")
        prepared, contexts, queries = [*ready.lower, ready.looks], list[Context](), list[Tensor]()
        weights = forced or {}

        def look(number: int, query: Tensor) -> Tensor:
            names = {name: self._look_name(name, number) for name in prepared[number]}
            context: Context = self.blocks[number].looking(
                query[:, 0],
                prepared[number],
                position=state.position,
                past={name: state.past[own] for name, own in names.items() if own in state.past},
                forced={
                    name: weights[key]
                    for name, own in names.items()
                    if (key := own if own in weights else name) in weights
                },
                generator=generator,
            )
            queries.append(query[:, 0])
            contexts.append(context)
            return context.context[:, None]

        tokens = None if token is None else token[:, None]
        features, caches, layers = self._run_layers(ready, state, tokens, look, need_weights=ready.maps)
        for layer, query in zip(layers, queries, strict=False):
            layer.query = query
        *pasts, past = [context.past for context in contexts] or [{}]
        *lower, last = [context.looks for context in contexts] or [{}]
        after = replace(state, position=state.position + 1, caches=caches, past=layered(past, pasts))
        own = [layer.self_attention.weights[:, :, 0] for layer in layers if layer.self_attention is not None]
        padded = [_padded(each, after.position) for each in own]
        return Step(after, features[:, 0], last, lower, self_weights=padded, layers=layers)

    @property
    def way_of_teaching(self) -> str:
        remembers = any(layer.looking.remembers for layer in self.blocks)
        changed = type(self).teach is not TransformerDecoder.teach
        return super().way_of_teaching if remembers or changed else "all steps at once"

    def teach(self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"]) -> Step:
        """All steps of a target at once, each seeing those before it; step by step where a score remembers looks."""
        if state.past or self.one_step:
            return super().teach(ready, state, tokens)
        prepared, looks = [*ready.lower, ready.looks], list[dict[str, Look]]()

        def look(number: int, queries: Tensor) -> Tensor:
            context = self.blocks[number].looking.all_at_once(queries, prepared[number], position=state.position)
            looks.append(context.looks)
            return context.context

        features, caches, _ = self._run_layers(ready, state, tokens, look)
        *lower, last = looks or [{}]
        after = replace(state, position=state.position + tokens.shape[1], caches=caches)
        return Step(after, features, last, lower)

    def _run_layers(
        self,
        ready: Ready,
        state: State,
        tokens: Int[Tensor, "rows steps"] | None,
        look: LayerLook,
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "rows steps size"], list[Cache], list[LayerStep]]:
        """From symbols to features, with the caches for later steps: what `step` and `teach` share.

        Also what happened in each layer at the last of these steps, with self-attention if `need_weights`.
        """
        states = self._inputs(ready, state, tokens)
        caches, layers = list[Cache](), list[LayerStep]()
        for number, (layer, cache) in enumerate(zip(self.blocks, state.caches, strict=True)):
            own_look = partial(look, number) if layer.looking else None
            states, kept, numbers = layer(states, cache, own_look, need_weights=need_weights)
            caches.append(kept)
            layers.append(LayerStep(states[:, -1], self_attention=numbers))
        return dropout(self.norm(states), self.dropout, self.training), caches, layers

    def _inputs(
        self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"] | None
    ) -> Float[Tensor, "rows steps size"]:
        """The embedded symbols with the summaries added; without symbols the first state alone."""
        if tokens is None:
            return repeat_rows(ready.start[0][0], state.width)[:, None]
        states: Tensor = self.entrance(tokens, first=state.position)
        if ready.every is not None:
            states = states + repeat_rows(ready.every, state.width)[:, None]
        traced = isinstance(state.position, Tensor)
        if ready.start and (traced or state.position == 0):
            first = repeat_rows(ready.start[0][0], state.width)[:, None]
            first = first * (state.position == 0) if traced else first
            states = torch.cat([states[:, :1] + first, states[:, 1:]], dim=1)
        return states

    def _look_name(self, name: str, number: int) -> str:
        """The name of a layer's looks at an input."""
        return name if number == len(self.layers) - 1 else layer_name(name, number)

    def equations(self, *, output: str = "an answer") -> DecoderEquations:
        settings, once = self.settings, self.one_step
        layers = f", {settings.layers} layers" if settings.layers > 1 else ""
        detail = f", one step that gives {output}" if once else f", {settings.heads} heads"
        every = joined_equation(self.every_names, self.join)
        note = "each layer has its own attention; the last one's is shown first, the others as layer-1, ..."
        return DecoderEquations(
            f"transformer of size {settings.size}{layers}{detail}",
            embedding="" if once else self.embedding.equation("y"),
            start=self._start_equation(),
            every=every,
            query="norm(x)" if once else "norm(x_t)",
            attention=self.looking.equations(),
            notes=[note] if len(self.layers) > 1 else [],
            step=self._step_equations(every),
            features="s" if once else "s_t",
            from_start=once,
        )

    def _start_equation(self) -> str:
        if self.start is None:
            return "from <sos> alone"
        return self.start.equation("x" if self.one_step else "x_1 = x_1 + s_0,  s_0")

    def _step_equations(self, every: str) -> list[str]:
        layer = self.blocks[0].equation()
        if self.one_step:
            return [layer.replace("_t", ""), "s = norm(x)"]
        return [
            self.entrance.token_equation("y_{t-1}", "t", more=f" + W_h {every}" if every else ""),
            layer,
            "self(x)_t = W_o [c_t of each head] + b_o,  c_t = sum_i softmax_i(W_q x_t . W_k x_i / sqrt(d)) W_v x_i",
            "s_t = norm(x_t)",
        ]

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | layer_symbols(self.layers)


def _padded(weights: Float[Tensor, "rows heads seen"], steps: int) -> Float[Tensor, "rows heads steps"]:
    """Weights of the last of so many steps, with zeros at those too far back to be seen."""
    return pad(weights, (max(steps - weights.shape[-1], 0), 0))
