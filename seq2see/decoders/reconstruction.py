"""The reconstruction decoder: one step that turns a code into numbers, by dense layers that mirror the encoder's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeVar

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from seq2see.attention import AttentionSettings
from seq2see.decoders.base import AnswerSettings, Conditions, decoders, joined_size
from seq2see.decoders.label import LabelDecoder
from seq2see.decoders.records import DecoderEquations, Ready, State, Step
from seq2see.dropout import dropout
from seq2see.encoders import Dense
from seq2see.encoders.convolutional import ConvolutionalEncoderSettings
from seq2see.encoders.dense import DenseEncoderSettings
from seq2see.registry import Problem
from seq2see.settings.base import MOST_LAYERS, Activation, Settings, Size, no_effect
from seq2see.settings.columns import EncoderSettings
from seq2see.symbols import Symbols, default_symbols, prefixed, symbols_of

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

Sizes = Annotated[list[Size], Field(max_length=MOST_LAYERS)]


class ReconstructionSettings(Settings):
    """How a code becomes numbers again: dense layers, or for pictures transposed convolutions, and one linear layer."""

    hidden: Literal["mirrored"] | Sizes = Field(
        "mirrored",
        description="sizes of the layers after the code; mirrored: those of the dense encoder it starts from, "
        "in reverse (none if it starts from another)",
    )
    activation: Literal["mirrored"] | Activation = Field(
        "mirrored", description="of these layers; mirrored: that of the encoder (relu if it has none)"
    )
    pixels: Literal["dense", "transposed"] = Field(
        "dense", description="pictures: every pixel by a dense layer, or all by transposed convolutions"
    )
    channels: Literal["mirrored"] | Sizes = Field(
        "mirrored",
        description="transposed: maps of each level, which doubles height and width; mirrored: those of the "
        "convolutional encoder it starts from, the last one first",
    )
    output: Literal["linear", "logistic"] | None = Field(
        None, description="of the last layer; not given: logistic (0 to 1) for pictures, linear for vectors"
    )

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        output = recipe.output
        if self.output == "logistic" and output.normalised:
            message = "logistic stays between 0 and 1, and normalised numbers do not"
            allowed = f"linear, or output.{output.plain_by}"
            yield Problem(f"{path}.output", f"{message}; allowed: {allowed}", "reconstruction")
        if output.shape is None:
            yield from no_effect(self, path, ["pixels"], "the output is not a picture")
        elif self.pixels == "transposed":
            yield from self._check_channels(recipe, output.shape, path)
        if self.pixels != "transposed":
            yield from no_effect(self, path, ["channels"], f"{path}.pixels is dense")
            if not hidden_sizes(recipe):
                yield from no_effect(self, path, ["activation"], f"{path}.hidden has no layers")

    def _check_channels(self, recipe: Recipe, shape: tuple[int, int, int], path: str) -> Iterator[Problem]:
        """Transposed convolutions double the sides of a picture."""
        levels, (_, height, width) = channel_sizes(recipe), shape
        if not levels:
            message = "mirrored needs one convolutional encoder in decoder.start; allowed: a list of sizes"
            yield Problem(f"{path}.channels", message, "reconstruction")
        elif any(side % (1 << len(levels)) for side in (height, width)):
            message = f"{len(levels)} levels double a side so often, and {height} x {width} pixels do not come of that"
            allowed = f"fewer levels, or sides that {1 << len(levels)} divides"
            yield Problem(f"{path}.channels", f"{message}; allowed: {allowed}", "reconstruction")


class ReconstructionDecoderSettings(AnswerSettings):
    """A decoder of one step, which gives a vector or a picture."""

    writes = ("numbers",)
    starts_by_size = False
    kind: Literal["reconstruction"] = Field("reconstruction", description="from a code to numbers")
    reconstruction: ReconstructionSettings = ReconstructionSettings()

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if recipe.started_by:
            yield from no_effect(self, path, ["size", "start_by"], "it starts from the code as it is")


# --- What mirrors the encoder


def reconstruction_of(recipe: Recipe) -> ReconstructionSettings:
    """How the decoder turns a code into numbers; the defaults for a decoder of another kind."""
    decoder = recipe.decoder
    return decoder.reconstruction if isinstance(decoder, ReconstructionDecoderSettings) else ReconstructionSettings()


def hidden_sizes(recipe: Recipe) -> list[int]:
    """Sizes of the layers behind the code."""
    hidden = reconstruction_of(recipe).hidden
    if isinstance(hidden, list):
        return hidden
    dense = _only_start(recipe, DenseEncoderSettings)
    return [] if dense is None else dense.hidden[::-1]


def hidden_activation(recipe: Recipe) -> str:
    """The activation of these layers."""
    activation = reconstruction_of(recipe).activation
    if activation != "mirrored":
        return activation
    dense = _only_start(recipe, DenseEncoderSettings)
    return "relu" if dense is None else dense.activation


def channel_sizes(recipe: Recipe) -> list[int]:
    """Maps of each level of transposed convolutions; none where there is nothing to mirror."""
    channels = reconstruction_of(recipe).channels
    if isinstance(channels, list):
        return channels
    convolutional = _only_start(recipe, ConvolutionalEncoderSettings)
    return [] if convolutional is None else convolutional.channels[::-1]


def output_activation(recipe: Recipe) -> str:
    """The activation of the last layer."""
    return reconstruction_of(recipe).output or recipe.output.activation


E = TypeVar("E", bound=EncoderSettings)


def _only_start(recipe: Recipe, kind: type[E]) -> E | None:
    """The settings of the encoder that alone starts the decoder, if they are of that class."""
    settings = [recipe.encoder_of(name) for name in recipe.started_by]
    return settings[0] if len(settings) == 1 and isinstance(settings[0], kind) else None


@decoders.register("reconstruction")
class ReconstructionDecoder(LabelDecoder):
    """s is the code itself (the summaries it starts from), or a parameter; features are u = g(.. W_1 [s; c] + b_1 ..),
    or [s; c] where there are no layers."""

    Settings: ClassVar[type[AnswerSettings]] = ReconstructionDecoderSettings

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
