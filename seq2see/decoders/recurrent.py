"""The recurrent decoder: s_t = cell(s_{t-1}, [e(y_{t-1}); c_t; h])."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from seq2see.attention import Attention, AttentionSettings, Look
from seq2see.cells import Cell, CellSettings, CellState, build_cell
from seq2see.decoders.base import (
    Conditions,
    Decoder,
    InitialState,
    OwnDecoderSettings,
    SeenSettings,
    SymbolSettings,
    WrittenSettings,
    decoders,
    join_summaries,
    joined_equation,
    joined_size,
)
from seq2see.decoders.cross_attention import Context, CrossAttention
from seq2see.decoders.fused_loop import LoopKind, loop_kind, run_loop
from seq2see.decoders.records import DecoderEquations, LayerStep, Ready, State, Step, stack, top_output
from seq2see.deferred_gradients import DeferredProduct, Product
from seq2see.dropout import SequenceDropout, dropout
from seq2see.embeddings import READ_BY_CELLS, Embedding, OneHot
from seq2see.memory import Memory, repeat_rows
from seq2see.symbols import Symbols, default_symbols, layer_symbols


class RecurrentDecoderSettings(CellSettings, SeenSettings, SymbolSettings, WrittenSettings):
    """A recurrent network that writes symbol by symbol."""

    kind: Literal["recurrent"] = Field("recurrent", description="a recurrent network over the output so far")


@decoders.register("recurrent")
class RecurrentDecoder(Decoder):
    """Inputs of the first layer: `y`, the embedding of the last symbol; `c`, the context; `h`, summaries.

    If the query is the previous state (the default), c_t enters step t; if it is the current one, c_t enters the output
    layer, and step t+1 by input feeding. Features are s_t, or [s_t; c_t; e(y_{t-1})].
    """

    Settings = RecurrentDecoderSettings
    embedding_deviation = READ_BY_CELLS

    def __init__(
        self,
        settings: RecurrentDecoderSettings | OwnDecoderSettings,
        attention: AttentionSettings,
        conditions: Conditions,
    ):
        super().__init__(settings, attention, conditions)
        embedding, every = conditions.embedding, conditions.every
        if embedding is None:
            raise ValueError("a recurrent decoder reads symbols: it needs their embedding")
        self.embedding: Embedding | OneHot = embedding
        self.looking = CrossAttention(attention, query=settings.size, views=conditions.looks)
        self.current = attention.query == "current"
        self.feeds = bool(self.looking) and (not self.current or attention.input_feeding)
        self.whole_output = settings.output == "all"
        self.dropout, self.variational = settings.dropout, settings.variational
        self.every_names, self.join = tuple(every), settings.join
        inputs = {"y": embedding.size}
        if self.feeds:
            inputs["c"] = self.looking.size
        if every:
            inputs["h"] = joined_size(list(every.values()), settings.join)
        single = settings.model_copy(update={"layers": 1})
        self.layers = nn.ModuleList(
            build_cell(single, inputs if number == 0 else {"x": settings.size}) for number in range(settings.layers)
        )
        changed = type(self)._advance is not RecurrentDecoder._advance
        attentions = list(self.looking.over.values())
        self.loop = None if changed else loop_kind(self.cells, attentions, current=self.current)
        self.start = InitialState(
            conditions.start,
            size=settings.size,
            layers=settings.layers,
            states=self.first.states,
            by=settings.start_by,
            join=settings.join,
        )
        self.features_size = settings.size
        if self.whole_output:
            self.features_size += self.looking.size + embedding.size

    @property
    def cells(self) -> list[Cell]:
        """The cells from the bottom layer to the top one."""
        return list(cast("Iterable[Cell]", self.layers))

    @property
    def first(self) -> Cell:
        return self.cells[0]

    def prepare(self, memory: Memory) -> Ready:
        """Compute once per input: keys, s_0, and the product of the summary that enters every step."""
        every = None
        if self.every_names:
            summary = join_summaries([memory.summaries[name] for name in self.every_names], self.join)
            every = self.first.project("h", summary)
        start = self.start(memory.summaries, memory.rows)
        return Ready(memory.rows, memory, self.looking.prepare(memory), start, every)

    def begin(self, ready: Ready, *, width: int = 1) -> State:
        """The state before the first step, `width` rows for each input."""
        cells = [tuple(repeat_rows(part, width) for part in state) for state in ready.start]
        context = None
        if self.feeds and self.current:
            context = cells[0][0].new_zeros(ready.rows * width, self.looking.size)
        past = self.looking.begin(ready.looks, width)
        return State(ready.rows * width, cells, width=width, context=context, past=past)

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        """Read one symbol and attend to the inputs."""
        if token is None:
            raise TypeError("this decoder reads a symbol at each step, got None")
        embedded = self._embedded(ready, token)
        projected = ready.linear(embedded, self.first.W["y"], self.first.b)
        if ready.every is not None:
            projected = projected + repeat_rows(ready.every, state.width)
        after, context = self._advance(
            ready, state, projected, forced=forced, generator=generator, product=ready.product
        )
        output = top_output(after.cells)
        features = self._features(ready, output, context.context if context else None, embedded)
        layers = [LayerStep(cell[0]) for cell in after.cells]
        if self.looking:
            layers[-1].query = output if self.current else top_output(state.cells)
        return Step(after, features, context.looks if context else {}, layers=layers, output=output)

    @property
    def way_of_teaching(self) -> str:
        if type(self).teach is not RecurrentDecoder.teach:
            return super().way_of_teaching
        if not self.feeds and not self.looking.remembers:
            return "all steps at once"
        return super().way_of_teaching if self.loop is None else "one fused loop over the steps"

    def teach(self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"]) -> Step:
        """All steps of a target: the same function as `step`, with all products that can be moved out of the loop."""
        embedded = self._embedded(ready, tokens)
        if not self.feeds and not state.past:
            return self._teach_parallel(ready, state, embedded)
        projected = self.first.project("y", embedded, bias=True)
        if ready.every is not None:
            projected = projected + repeat_rows(ready.every, state.width)[:, None]
        if self.loop is not None and state.width == 1 and tokens.shape[1]:
            return self._teach_fused(self.loop, ready, state, projected, embedded)
        product = DeferredProduct(tokens.shape[1])
        outputs: list[Tensor] = []
        looks: list[Context] = []
        for step in projected.unbind(1):
            state, context = self._advance(ready, state, step, product=product)
            outputs.append(top_output(state.cells))
            looks.append(context.trimmed())  # type: ignore[union-attr]
        together = Context.stacked(looks)
        features = self._features(ready, stack(outputs), together.context, embedded)
        return Step(state, features, together.looks)

    def _teach_fused(
        self,
        kind: LoopKind,
        ready: Ready,
        state: State,
        projected: Float[Tensor, "rows steps gates"],
        embedded: Float[Tensor, "rows steps size"],
    ) -> Step:
        """All steps as one function, for the decoders it knows."""
        (name, prepared), (_, attention) = next(iter(ready.looks.items())), next(iter(self.looking.over.items()))
        assert isinstance(attention, Attention)
        U, mask = self.first.dropped_parts(state.cells[0], ready.dropped)
        done = run_loop(
            kind, self.first, attention, prepared, projected, state.cells[0], state.context, U=U, dropped=mask
        )
        look = Look(done.contexts, done.weights, None, prepared.mask.shape[1])
        last = done.contexts[:, -1] if state.context is not None else None
        after = replace(state, cells=[done.state], position=state.position + projected.shape[1], context=last)
        features = self._features(ready, done.outputs, done.contexts, embedded)
        return Step(after, features, {name: look})

    def _advance(
        self,
        ready: Ready,
        state: State,
        projected: Float[Tensor, "rows gates"],
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
        product: Product,
    ) -> tuple[State, Context | None]:
        """One transition from the projected embedding (and summary): what `step` and `teach` share."""

        def look(query: Tensor) -> Context:
            context: Context = self.looking(
                query, ready.looks, position=state.position, past=state.past, forced=forced, generator=generator
            )
            return context

        context: Context | None = None
        if self.looking and not self.current:
            context = look(top_output(state.cells))
            projected = projected + product(context.context, self.first.W["c"], "W_c")
        elif state.context is not None:
            projected = projected + product(state.context, self.first.W["c"], "W_c")
        cells = self._run_layers(projected, state.cells, product, ready.dropped)
        if self.looking and self.current:
            context = look(top_output(cells))
        fed = context.context if context is not None and state.context is not None else None
        past = context.past if context is not None else state.past
        after = replace(state, cells=cells, position=state.position + 1, context=fed, past=past)
        return after, context

    def _run_layers(
        self,
        projected: Float[Tensor, "rows gates"],
        before: list[CellState],
        product: Product,
        dropped: SequenceDropout,
    ) -> list[CellState]:
        cells = [self.first(projected, before[0], product=self.first.recurrent_product(product, dropped))]
        for number, (layer, state) in enumerate(zip(self.cells[1:], before[1:], strict=True)):
            below = self._dropout(cells[-1][0], dropped, f"layer {number}")
            above = product(below, layer.W["x"], f"{id(layer)}.W_x") + layer.b
            cells.append(layer(above, state, product=layer.recurrent_product(product, dropped)))
        return cells

    def _teach_parallel(self, ready: Ready, state: State, embedded: Float[Tensor, "rows steps size"]) -> Step:
        """All steps where no context enters the recurrence: each layer is one call, and all looks are another."""
        start = state.cells
        if ready.every is not None:
            every = repeat_rows(ready.every, state.width)[:, None]
            projected = self.first.project("y", embedded, bias=True) + every
            outputs, last = _run_projected(self.first, projected, start[0], ready.dropped)
        else:
            outputs, last = self.first.run({"y": embedded}, start[0], ready.dropped)
        cells = [last]
        for number, (layer, before) in enumerate(zip(self.cells[1:], start[1:], strict=True)):
            below = self._dropout(outputs, ready.dropped, f"layer {number}")
            outputs, last = layer.run({"x": below}, before, ready.dropped)
            cells.append(last)
        context = self.looking.all_at_once(outputs, ready.looks, position=state.position) if self.looking else None
        features = self._features(ready, outputs, context.context if context else None, embedded)
        after = replace(state, cells=cells, position=state.position + embedded.shape[1])
        return Step(after, features, context.looks if context else {})

    def features_of(self, output: Tensor, context: Tensor | None, embedded: Tensor) -> Tensor:
        """What the output layer sees, before dropout: s_t, or [s_t; c_t; e(y_{t-1})]."""
        if not self.whole_output:
            return output
        return torch.cat([output, embedded] if context is None else [output, context, embedded], dim=-1)

    def _features(self, ready: Ready, output: Tensor, context: Tensor | None, embedded: Tensor) -> Tensor:
        return self._dropout(self.features_of(output, context, embedded), ready.dropped, "features")

    def _dropout(self, x: Float[Tensor, "rows *steps size"], dropped: SequenceDropout, name: str) -> Tensor:
        return dropout(x, self.dropout, self.training, alike=dropped if self.variational else None, name=name)

    def _embedded(self, ready: Ready, tokens: Int[Tensor, "rows *steps"]) -> Float[Tensor, "rows *steps size"]:
        vectors: Tensor = self.embedding(tokens, ready.dropped if self.variational else None)
        return vectors

    def equations(self, *, output: str = "an answer") -> DecoderEquations:
        settings, embedded = self.settings, "e(y_{t-1})"
        inputs = [embedded]
        if self.looking and not self.current:
            inputs.append("c_t")
        elif self.feeds:
            inputs.append("c_{t-1}")
        every = joined_equation(self.every_names, self.join)
        features = ["s_t", *["c_t"] * bool(self.looking), embedded] if self.whole_output else ["s_t"]
        layers = f", {settings.layers} layers" if settings.layers > 1 else ""
        return DecoderEquations(
            f"{settings.cell} of size {settings.size}{layers}",
            embedding=self.embedding.equation("y"),
            start=self.start.equation("s_0"),
            every=every,
            query="s_t" if self.current else "s_{t-1}",
            attention=self.looking.equations(),
            step=[f"s_t = {settings.cell}(s_{{t-1}}, [{'; '.join([*inputs, *[every] * bool(every)])}])"],
            cell=self.first.equation(),
            cell_name=settings.cell,
            features=features[0] if len(features) == 1 else f"[{'; '.join(features)}]",
        )

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | layer_symbols(self.layers)


def _run_projected(
    cell: Cell, projected: Tensor, state: CellState, dropped: SequenceDropout
) -> tuple[Tensor, CellState]:
    product = cell.recurrent_product(DeferredProduct(projected.shape[1]), dropped)
    outputs = []
    for step in projected.unbind(1):
        state = cell(step, state, product=product)
        outputs.append(state[0])
    return stack(outputs), state
