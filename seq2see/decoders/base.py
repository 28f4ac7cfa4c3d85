"""What every decoder offers to the model, to training and to search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.decoders.looking import Looking
from seq2see.decoders.records import Ready, State, Step
from seq2see.embeddings import Embedding, OneHot
from seq2see.memory import Memory, View
from seq2see.recipe.schema import AttentionSettings
from seq2see.registry import Registry


@dataclass
class Conditions:
    """What a decoder is built into: the symbols it reads, places it may look at, and sizes of summaries, by input name.

    embedding: of the output's symbols, None where none are read; start: what makes s_0; every: what enters each step.
    """

    embedding: Embedding | OneHot | None = None
    looks: Mapping[str, View] = field(default_factory=dict)
    start: Mapping[str, int] = field(default_factory=dict)
    every: Mapping[str, int] = field(default_factory=dict)


class Decoder(nn.Module):
    """Writes while looking at a memory.

    features_size: what its output head sees; one_step: it gives a single answer and reads no symbol (labels);
    direct: its features are made to be compared with embeddings as they are, where the output layer is tied to them.
    """

    one_step: bool = False
    direct: bool = False
    features_size: int
    looking: Looking

    def __init__(self, settings: Any, attention: AttentionSettings, conditions: Conditions):
        super().__init__()

    def prepare(self, memory: Memory) -> Ready:
        """What is computed once per input."""
        raise NotImplementedError

    def begin(self, ready: Ready, *, width: int = 1) -> State:
        """The state before the first step, `width` rows for each input."""
        raise NotImplementedError

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        """The only transition there is; a decoder of one step reads no token. The generator draws hard looks."""
        raise NotImplementedError

    def teach(self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"]) -> Step:
        """The steps of a whole given target: the same function as `step`."""
        raise TypeError("a label is decoded in one step: there is no target to teach symbol by symbol")


decoders: Registry[type[Decoder]] = Registry("decoder")
