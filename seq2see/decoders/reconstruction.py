"""The reconstruction decoder: one step that turns a code into numbers, by dense layers that mirror the encoder's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import dropout

from seq2see.decoders.base import Conditions, decoders, joined_size
from seq2see.decoders.label import LabelDecoder
from seq2see.decoders.records import DecoderEquations, Ready, State, Step
from seq2see.encoders import Dense
from seq2see.settings.attention import AttentionSettings
from seq2see.settings.decoders import ReconstructionDecoderSettings
from seq2see.symbols import Symbols, default_symbols, prefixed, symbols_of


@decoders.register("reconstruction")
class ReconstructionDecoder(LabelDecoder):
    """s is the code itself (the summaries it starts from), or a parameter; features are u = g(.. W_1 [s; c] + b_1 ..),
    or [s; c] where there are no layers."""

    def __init__(self, settings: ReconstructionDecoderSettings, attention: AttentionSettings, conditions: Conditions):
        code = joined_size(list(conditions.start.values()), settings.join) if conditions.start else settings.size
        copied = settings.model_copy(update={"size": code, "start_by": "copy"})
        super().__init__(copied, attention, conditions)
        layers = conditions.layers
        self.dense = Dense(self.features_size, layers.sizes, activation=layers.activation, dropout=settings.dropout)
        self.features_size = self.dense.size

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None = None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        """One look where there is attention, one answer."""
        step = super().step(ready, state, token, forced=forced, generator=generator)
        if not len(self.dense):
            return step
        features = self.dense(step.features)
        return replace(step, features=dropout(features, self.dropout, self.training))

    def equations(self, *, output: str = "an answer") -> DecoderEquations:
        equations = super().equations(output=output)
        return replace(equations, features=self.dense.equation(equations.features))

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | prefixed("dense", symbols_of(self.dense), where="dense")
