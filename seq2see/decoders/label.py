"""The label decoder: one step without a symbol to read, one look, one distribution over labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from seq2see.attention import AttentionSettings
from seq2see.decoders.base import (
    AnswerSettings,
    Conditions,
    Decoder,
    InitialState,
    OwnAnswerSettings,
    ReadoutSettings,
    decoders,
    joined_equation,
)
from seq2see.decoders.cross_attention import Context, CrossAttention
from seq2see.decoders.records import DecoderEquations, LayerStep, Ready, State, Step
from seq2see.dropout import dropout
from seq2see.memory import Memory, repeat_rows


class LabelDecoderSettings(ReadoutSettings, AnswerSettings):
    """A decoder of one step, which gives a label."""

    writes = ("label",)
    kind: Literal["label"] = Field("label", description="one look, one distribution over labels")


@decoders.register("label")
class LabelDecoder(Decoder):
    """The query is s = s_0, from the summaries or learned; features are [s; c], or s if the output sees that alone."""

    Settings: ClassVar[type[AnswerSettings]] = LabelDecoderSettings

    one_step = True

    def __init__(
        self,
        settings: AnswerSettings | OwnAnswerSettings,
        attention: AttentionSettings,
        conditions: Conditions,
    ):
        super().__init__(settings, attention, conditions)
        self.looking = CrossAttention(attention, query=settings.size, views=conditions.looks)
        self.whole_output = settings.output == "all"
        self.dropout = settings.dropout
        self.start = InitialState(
            conditions.start, size=settings.size, layers=1, states=1, by=settings.start_by, join=settings.join
        )
        self.features_size = settings.size + (self.looking.size if self.whole_output else 0)

    def prepare(self, memory: Memory) -> Ready:
        return Ready(memory.rows, memory, self.looking.prepare(memory), self.start(memory.summaries, memory.rows))

    def begin(self, ready: Ready, *, width: int = 1) -> State:
        cells = [tuple(repeat_rows(part, width) for part in state) for state in ready.start]
        return State(ready.rows * width, cells, width=width, past=self.looking.begin(ready.looks, width))

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None = None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        """One look, one answer."""
        query = state.cells[0][0]
        features, looks = query, {}
        if self.looking:
            context: Context = self.looking(
                query, ready.looks, position=state.position, past=state.past, forced=forced, generator=generator
            )
            looks = context.looks
            if self.whole_output:
                features = torch.cat([query, context.context], dim=-1)
        after = replace(state, position=state.position + 1)
        layer = LayerStep(query, query if self.looking else None)
        return Step(after, dropout(features, self.dropout, self.training), looks, layers=[layer], output=query)

    def equations(self, *, output: str = "an answer") -> DecoderEquations:
        return DecoderEquations(
            f"one step that gives {output}, state s of {self.start.size} numbers",
            start=self.start.equation("s"),
            every=joined_equation(list(self.conditions.every), self.settings.join),
            query="s",
            attention=self.looking.equations(),
            features="[s; c]" if self.looking and self.whole_output else "s",
            from_start=True,
        )
