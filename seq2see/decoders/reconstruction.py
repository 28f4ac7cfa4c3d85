"""The decoder of one step that gives numbers: a code through dense layers, the encoder's in a mirror."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import dropout

from seq2see.decoders.base import Conditions, decoders, joined_size
from seq2see.decoders.label import LabelDecoder
from seq2see.decoders.records import Ready, State, Step
from seq2see.encoders import Dense
from seq2see.settings.attention import AttentionSettings
from seq2see.settings.decoders import DecoderSettings


@decoders.register("reconstruction")
class ReconstructionDecoder(LabelDecoder):
    """s = the code itself (the summaries it starts from), or learned where there is none; u = g(.. W_1 [s; c] + b_1 ..)
    are the features, [s; c] where there are no layers."""

    def __init__(self, settings: DecoderSettings, attention: AttentionSettings, conditions: Conditions):
        code = joined_size(list(conditions.start.values()), settings.join) if conditions.start else settings.size
        as_it_is = settings.model_copy(update={"size": code, "start_by": "copy"})
        super().__init__(as_it_is, attention, conditions)
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
        made = super().step(ready, state, token, forced=forced, generator=generator)
        if not len(self.dense):
            return made
        features = self.dense(made.features)
        return replace(made, features=dropout(features, self.dropout, self.training))
