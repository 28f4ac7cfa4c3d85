"""The matching decoder: places of two inputs are compared one by one before a label is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from seq2see.attention import Attention, AttentionSettings
from seq2see.attention.scores import ScaledDot
from seq2see.decoders.base import AnswerSettings, Conditions, ReadoutSettings, decoders
from seq2see.decoders.label import LabelDecoder
from seq2see.decoders.records import DecoderEquations, Ready
from seq2see.dropout import dropout
from seq2see.encoders.layers import masked_mean
from seq2see.errors import UserError
from seq2see.memory import EncoderMap, Memory
from seq2see.registry import Problem
from seq2see.settings.base import FittedDropout

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class MatchingDecoderSettings(ReadoutSettings, AnswerSettings):
    """A label of two inputs, each place of which looks for its like in the other input."""

    writes = ("label",)
    reads_summaries = False
    kind: Literal["matching"] = Field(
        "matching", description="a label for two inputs: each place is compared with its counterpart in the other input"
    )
    dropout: FittedDropout = Field(0.0, description="on compared places, and on what the output layer sees")
    start: str | list[str] | None = Field(None, description="the two inputs that are compared")
    start_by: Literal["dense"] = Field("dense", description="through a dense layer")

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        matched = recipe.started_by
        if len(matched) != 2 or matched[0] == matched[1]:
            message = f"matching compares the places of two inputs, got {', '.join(matched) or 'none'}"
            yield Problem(f"{path}.start", f"{message}; allowed: two of {', '.join(recipe.inputs)}", "matching")
            return
        for name in matched:
            if recipe.one_place(name):
                message = f"'{name}' is a single place, and matching compares places one by one"
                yield Problem(f"{path}.start", message, "matching")
        sizes = [recipe.encoder_of(name).places_size for name in matched]
        if None not in sizes and (message := check_sizes(sizes)):
            yield Problem(f"{path}.kind", message, "matching")


def check_sizes(sizes: list[int | None]) -> str:
    """Why places of these sizes cannot be compared; nothing where they can."""
    if sizes[0] == sizes[1]:
        return ""
    return f"matching subtracts places from each other, which needs one size, got {sizes[0]} and {sizes[1]}"


@decoders.register("matching")
class MatchingDecoder(LabelDecoder):
    """m_j = relu(W_m [h_j; c_j; h_j - c_j; h_j * c_j] + b_m), c_j what h_j finds in the other input; then as `label`.

    Each place of an input looks at all places of the other one, by their scaled dot product, and is compared with the
    mean it sees (Parikh et al. 2016; Chen et al. 2017). The m_j take the place of the h_j, and [mean_j m_j; max_j m_j]
    that of the summary. Both inputs have the same W_m. Weights are maps of the memory, `premise.hypothesis`: rows are
    places of the first, columns of the second.
    """

    Settings: ClassVar[type[AnswerSettings]] = MatchingDecoderSettings

    def __init__(self, settings: MatchingDecoderSettings, attention: AttentionSettings, conditions: Conditions):
        if len(conditions.start) != 2:
            raise UserError(f"decoder.start: matching compares two inputs, got {len(conditions.start)}")
        sizes = [conditions.places[name].size for name in conditions.start]
        if message := check_sizes([*sizes]):
            raise UserError(f"decoder.kind: {message}")
        size = sizes[0]
        pooled = dict.fromkeys(conditions.start, 2 * size)
        super().__init__(settings, attention, replace(conditions, start=pooled))
        self.matched = tuple(conditions.start)
        self.matching = Attention(ScaledDot(size, size))
        self.W_m = nn.Linear(4 * size, size)

    def prepare(self, memory: Memory) -> Ready:
        return super().prepare(self.match(memory))

    def match(self, memory: Memory) -> Memory:
        """The memory with compared places and their summaries, and with what each place looked at as maps."""
        first, second = self.matched
        matched = Memory(dict(memory.places), dict(memory.summaries), dict(memory.maps), memory.rows)
        for name, other in ((first, second), (second, first)):
            places, others = memory.places[name], memory.places[other]
            look = self.matching(places.states, self.matching.prepare(others))
            states = dropout(self.compare(places.states, look.context), self.dropout, self.training)
            matched.places[name] = replace(places, states=states)
            matched.summaries[name] = pooled_states(states, places.mask)
            matched.maps[f"{name}.{other}"] = EncoderMap(look.dense(), places.mask, others.mask, others.layout)
        return matched

    def compare(
        self, states: Float[Tensor, "batch places size"], seen: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch places size"]:
        """relu(W_m [h; c; h - c; h * c] + b_m)"""
        return torch.relu(self.W_m(torch.cat([states, seen, states - seen, states * seen], dim=-1)))

    def equations(self, *, output: str = "an answer") -> DecoderEquations:
        label, (u, v) = super().equations(output=output), self.matched
        matching = [
            f"e_ji = h_j . k_i / sqrt(d), h_j of {u}, k_i of {v}, and the other way round;  d the size of both",
            "a_ji = exp(e_ji) / sum_l exp(e_jl), over the real places;  c_j = sum_i a_ji k_i",
            "m_j = relu(W_m [h_j; c_j; h_j - c_j; h_j * c_j] + b_m);  summary = [mean_j m_j; max_j m_j]",
        ]
        look = label.attention
        if look is not None:
            look = replace(look, place="m_j", context=look.context.replace("h_j", "m_j"))
        return replace(label, matching=matching, attention=look)


def pooled_states(
    states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
) -> Float[Tensor, "batch twice"]:
    """[mean_j m_j; max_j m_j] over real places; zeros where no place is real."""
    real = mask[..., None]
    largest = states.masked_fill(~real, torch.finfo(states.dtype).min).amax(1) * real.any(1)
    return torch.cat([masked_mean(states, mask), largest], dim=-1)
