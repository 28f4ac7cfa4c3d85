"""How an output is written: one class of settings for decoders of every kind."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seq2see.recipe.basics import CellSettings, Count, EmbeddingSettings, Positive, Scalar
from seq2see.recipe.own import DECODERS, Own

WRITERS = ("recurrent", "transformer", "label")
"""The decoders of the house; plug-ins bring others."""


class DecoderSettings(CellSettings):
    """s_1 .. s_T: how the output is written, and what conditions it."""

    kind: str = Field(
        "recurrent",
        description="a recurrent network, layers of self-attention, or the decoder of one step for label outputs",
    )
    heads: Positive = Field(4, description="transformer: looks side by side at what was written; divides the size")
    feedforward: Positive = Field(1024, description="transformer: size of the inner layer behind each look")
    positions: Literal["sinusoidal", "learned", "none"] = Field(
        "sinusoidal", description="transformer: how a symbol knows where it stands"
    )
    longest: Count = Field(512, description="transformer, learned positions: symbols of the longest output, with <eos>")
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
    readout: Count = Field(0, description="size of a tanh layer before the output layer; 0: none")
    tied: bool = Field(False, description="the output layer uses the embeddings of the output's symbols")
    copy_from: str | None = Field(
        None, description="input whose words can be copied into the output, whether its vocabulary has them or not"
    )
    options: dict[str, Scalar] = Field({}, description="a decoder of your own: settings that only it has, by name")

    @property
    def own(self) -> Own | None:
        """The class behind it, where a plug-in brought it."""
        return DECODERS.get(self.kind)

    @property
    def one_step(self) -> bool:
        """Whether it gives a single answer and reads no symbol."""
        return self.own.one_step if self.own is not None else self.kind == "label"
