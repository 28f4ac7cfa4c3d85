"""How an output is written: one class of settings for each kind of decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from seq2see.settings.base import (
    MOST_LAYERS,
    Activation,
    CellSettings,
    EmbeddingSettings,
    Layers,
    NameOf,
    Parts,
    Positions,
    Positive,
    Settings,
    Share,
    Size,
)

Sizes = Annotated[list[Size], Field(max_length=MOST_LAYERS)]


class ReconstructionSettings(Settings):
    """How a code becomes numbers again: dense layers, or for pictures transposed convolutions, and one linear layer."""

    hidden: Literal["mirrored"] | Sizes = Field(
        "mirrored",
        description="sizes of the layers behind the code; mirrored: those of the dense encoder it starts from, the "
        "last one first (none where it starts from another)",
    )
    activation: Literal["mirrored"] | Activation = Field(
        "mirrored", description="of these layers; mirrored: that encoder's (relu where there is none)"
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


DECODERS: dict[str, type[DecoderSettings]] = {}
"""The settings of each kind of decoder by its name; plug-ins add theirs."""


class DecoderSettings(Settings):
    """s_1 .. s_T: how the output is written, and what conditions it.

    writes: the kinds of output it can write; own: a plug-in brought it.
    """

    parts = {"kind": Parts(DECODERS)}
    writes: ClassVar[tuple[str, ...]] = ("text",)
    own: ClassVar[bool] = False
    plugin_keys = ("options",)
    kind: Annotated[str, NameOf(DECODERS)] = Field(
        "recurrent",
        description="a recurrent network, layers of self-attention (transformer; for a label layers of looks and "
        "thoughts), or a decoder of one step: label for labels, reconstruction for vectors and pictures; not given: "
        "the first that writes such an output",
    )
    size: Size = Field(256, description="size of a state")
    dropout: Share = Field(0.0, description="on what the output layer sees")
    start: str | list[str] | None = Field(
        None, description="inputs whose summary makes s_0 (transformer: joins <sos>); none: s_0 is learned"
    )
    start_by: Literal["copy", "dense"] = Field("dense", description="the summary itself, or through a dense layer")
    join: Literal["concat", "compare"] = Field(
        "concat", description="how summaries of two inputs meet: [u; v], or [u; v; |u - v|; u * v]"
    )


class SeenSettings(Settings):
    """What an output layer sees."""

    output: Literal["state", "all"] = Field("all", description="the output layer sees s_t, or [s_t; c_t; e(y_{t-1})]")


class ReadoutSettings(Settings):
    """What stands before an output layer."""

    readout: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="size of a tanh layer before the output layer; 0: none"
    )


class WrittenSettings(ReadoutSettings, DecoderSettings):
    """Decoders that write symbol by symbol."""

    layers: Layers = Field(1, description="one above the other")
    dropout: Share = Field(
        0.0,
        description="between layers and on what the output layer sees; transformer: on what enters and on what each "
        "part of a layer gives too",
    )
    every_step: str | list[str] | None = Field(None, description="inputs whose summary enters every step")
    copy_from: str | None = Field(
        None, description="input whose words can be copied into the output, whether its vocabulary has them or not"
    )


class SymbolSettings(Settings):
    """Decoders that read the symbols they have written."""

    embedding: EmbeddingSettings = EmbeddingSettings()
    tied: bool = Field(False, description="the output layer uses the embeddings of the output's symbols")


class SelfAttentionSettings(Settings):
    """Layers of self-attention over what was written."""

    heads: Size = Field(4, description="looks side by side at what was written; divides the size (not for labels)")
    feedforward: Size = Field(1024, description="size of the inner layer behind each look")
    positions: Positions = Field(
        "sinusoidal",
        description="how a symbol knows where it stands; rotary: how far apart two of them are (in streams, where it "
        "is not given)",
    )
    longest: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        512, description="learned positions: symbols of the longest output, with <eos>"
    )
    memory: Positive | None = Field(
        None, description="symbols before its own that a step can see; not given: all, in streams 256"
    )


class RecurrentDecoderSettings(CellSettings, SeenSettings, SymbolSettings, WrittenSettings):
    """A recurrent network that writes symbol by symbol."""

    kind: Literal["recurrent"] = Field("recurrent", description="a recurrent network over what it has written")


class TransformerDecoderSettings(SelfAttentionSettings, SymbolSettings, WrittenSettings):
    """Layers of self-attention over what was written; for a label layers of looks and thoughts."""

    writes = ("text", "label")
    kind: Literal["transformer"] = Field("transformer", description="layers of multi-head self-attention")


class AnswerSettings(SeenSettings, DecoderSettings):
    """Decoders of one step."""

    @classmethod
    def spelled(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Without `copy_from: none`, which says of every decoder what holds."""
        rest = {key: value for key, value in values.items() if key != "copy_from"}
        return rest if values.get("copy_from") == "none" else values


class LabelDecoderSettings(ReadoutSettings, AnswerSettings):
    """A decoder of one step, which gives a label."""

    writes = ("label",)
    kind: Literal["label"] = Field("label", description="one look, one distribution over labels")


class ReconstructionDecoderSettings(AnswerSettings):
    """A decoder of one step, which gives a vector or a picture."""

    writes = ("vector", "image", "series")
    kind: Literal["reconstruction"] = Field("reconstruction", description="from a code to numbers")
    reconstruction: ReconstructionSettings = ReconstructionSettings()


class OwnAnswerSettings(CellSettings, SeenSettings, SelfAttentionSettings, WrittenSettings):
    """What a decoder of a plug-in that gives a label in one step may make use of."""

    own = True
    writes: ClassVar[tuple[str, ...]] = ("label", "vector", "image", "series")


class OwnDecoderSettings(SymbolSettings, OwnAnswerSettings):
    """What a decoder of a plug-in may make use of."""

    writes = ("text",)


DECODERS.update(
    {
        "recurrent": RecurrentDecoderSettings,
        "label": LabelDecoderSettings,
        "transformer": TransformerDecoderSettings,
        "reconstruction": ReconstructionDecoderSettings,
    }
)


def writers_of(output: str) -> list[str]:
    """The kinds of decoder that write such an output; the first is meant where a recipe does not say."""
    return [name for name, settings in DECODERS.items() if output in settings.writes]
