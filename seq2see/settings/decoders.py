"""How an output is written: one class of settings for decoders of every kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seq2see.settings.base import (
    MOST_LAYERS,
    Activation,
    CellSettings,
    EmbeddingSettings,
    Positions,
    Positive,
    Scalar,
    Settings,
    Share,
    Size,
)
from seq2see.settings.plugins import DECODERS, Own

WRITERS = ("recurrent", "transformer", "label", "reconstruction")
"""The decoders of the house; plug-ins bring others."""


ONE_STEP = ("label", "reconstruction")
"""Those that give a single answer and read no symbol; of the others a transformer may, where the output is a label."""

BY_OUTPUT = {
    "text": ("recurrent", "transformer"),
    "label": ("label", "transformer"),
    "vector": ("reconstruction",),
    "image": ("reconstruction",),
}
"""Which of them write which kind of output; the first is meant where a recipe does not say."""


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


class DecoderSettings(CellSettings):
    """s_1 .. s_T: how the output is written, and what conditions it."""

    kind: str = Field(
        "recurrent",
        description="a recurrent network, layers of self-attention (transformer; for a label layers of looks and "
        "thoughts), or a decoder of one step: label for labels, reconstruction for vectors and pictures",
    )
    heads: Size = Field(
        4, description="transformer (not for labels): looks side by side at what was written; divides the size"
    )
    feedforward: Size = Field(1024, description="transformer: size of the inner layer behind each look")
    positions: Positions = Field(
        "sinusoidal",
        description="transformer: how a symbol knows where it stands; rotary: how far apart two of them are (in "
        "streams, where it is not given)",
    )
    longest: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        512, description="transformer, learned positions: symbols of the longest output, with <eos>"
    )
    memory: Positive | None = Field(
        None, description="transformer: symbols before its own that a step can see; not given: all, in streams 256"
    )
    dropout: Share = Field(
        0.0,
        description="between layers and on what the output layer sees; transformer: on what enters and on what each "
        "part of a layer gives too",
    )
    embedding: EmbeddingSettings = EmbeddingSettings()
    start: str | list[str] | None = Field(
        None, description="inputs whose summary makes s_0 (transformer: joins <sos>); none: s_0 is learned"
    )
    start_by: Literal["copy", "dense"] = Field("dense", description="the summary itself, or through a dense layer")
    every_step: str | list[str] | None = Field(None, description="inputs whose summary enters every step")
    join: Literal["concat", "compare"] = Field(
        "concat", description="how summaries of two inputs meet: [u; v], or [u; v; |u - v|; u * v]"
    )
    output: Literal["state", "all"] = Field("all", description="the output layer sees s_t, or [s_t; c_t; e(y_{t-1})]")
    readout: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="size of a tanh layer before the output layer; 0: none"
    )
    tied: bool = Field(False, description="the output layer uses the embeddings of the output's symbols")
    copy_from: str | None = Field(
        None, description="input whose words can be copied into the output, whether its vocabulary has them or not"
    )
    reconstruction: ReconstructionSettings = ReconstructionSettings()
    options: dict[str, Scalar] = Field({}, description="a decoder of your own: settings that only it has, by name")

    @property
    def own(self) -> Own | None:
        """The class behind it, where a plug-in brought it."""
        return DECODERS.get(self.kind)
