"""The recurrent encoder: cells read the input in one or both directions, with self-attention if asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from jaxtyping import Bool, Int
from pydantic import Field
from torch import Tensor

from seq2see.attention import scores
from seq2see.attention.build import reading_scores
from seq2see.cells import CellSettings
from seq2see.data.batches import Sequences
from seq2see.dropout import SequenceDropout
from seq2see.embeddings import READ_BY_CELLS, Embedding, EmbeddingSettings, OneHot, build_embedding
from seq2see.encoders.base import Encoded, Encoder, encoders
from seq2see.encoders.layers import LayerOutput, RecurrentLayers
from seq2see.errors import nearest
from seq2see.looks import Layout
from seq2see.memory import EncoderMap, Places
from seq2see.packed_weights import PackedWeights
from seq2see.registry import Problem
from seq2see.settings.base import or_plugin
from seq2see.settings.columns import EncoderSettings

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class RecurrentEncoderSettings(CellSettings, EncoderSettings):
    """h_1 .. h_M: how an input is read."""

    for_texts: ClassVar[bool] = True
    kind: Literal["recurrent"] = Field("recurrent", description="a recurrent network over the symbols")
    bidirectional: bool = Field(True, description="read in both directions, the states joined")
    self_attention: str = Field(
        "none",
        description="a score: each state looks back at the earlier ones of its direction; none: no such attention",
    )
    embedding: EmbeddingSettings = EmbeddingSettings()

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        """It looks back by a score that needs no more than the states computed so far."""
        allowed, score = [*reading_scores(), "none"], self.self_attention
        if score in allowed:
            return
        reason = f"unknown score '{score}'{nearest(score, allowed)}"
        if score in scores:
            reason = f"{score} depends on positions, and here the places are still being written"
        message = f"{reason}; allowed: {or_plugin(allowed)}"
        yield Problem(f"{path}.self_attention", message, "self-attention-score")


@encoders.register("recurrent")
class RecurrentEncoder(Encoder):
    """Places are the states h_j (both directions joined); the summary is the last state of each direction.

    >>> import torch
    >>> encoder = RecurrentEncoder(RecurrentEncoderSettings(size=4), symbols=10)
    >>> encoder(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    Settings = RecurrentEncoderSettings
    embedding_deviation = READ_BY_CELLS

    def __init__(
        self, settings: RecurrentEncoderSettings, *, symbols: int, embedding: Embedding | OneHot | None = None
    ):
        super().__init__()
        self.settings = settings
        if embedding is None:
            embedding = build_embedding(settings.embedding, symbols, deviation=self.embedding_deviation)
        self.embedding = embedding
        self.layers = RecurrentLayers(
            settings,
            self.embedding.size,
            bidirectional=settings.bidirectional,
            self_attention=settings.self_attention,
        )
        self.size = self.summary_size = self.layers.size

    def read(self, column: Sequences, *, maps: bool = False) -> Encoded:
        return self(column.ids, column.mask, column.symbols, maps=maps)  # type: ignore[no-any-return]

    def predict(self, column: Sequences, packed: PackedWeights, *, maps: bool = False) -> Encoded:
        """The same in one loop for both directions, where its cells have one; a subclass that reads in its own way is
        asked to read."""
        if (type(self).read, type(self).forward) != (RecurrentEncoder.read, RecurrentEncoder.forward):
            return self.read(column, maps=maps)
        E = self.embedding.weight
        read = None if E is None else self.layers.predict(column.ids, column.mask, E, packed)
        if read is None:
            return self.read(column, maps=maps)
        return Encoded(Places(read.states, column.mask, Layout("tokens"), column.symbols), read.last)

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        tokens: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        """maps: also return the self-attention of each layer, `self-1`, .. (`self-1-forwards`, .. if bidirectional)."""
        vectors = self.embedding(ids, SequenceDropout() if self.settings.variational else None)
        read: LayerOutput = self.layers(vectors, mask)
        layout = Layout("tokens")
        inner = {name: EncoderMap(each, mask, mask, layout) for name, each in read.weights.items()} if maps else {}
        return Encoded(Places(read.states, mask, layout, tokens), read.last, maps=inner)

    def equations(self) -> list[str]:
        settings, cell, attention = self.settings, self.settings.cell, self.layers.self_attention
        x, y = ("[e(x_j); c_j]", "[e(x_j); d_j]") if attention is not None else ("e(x_j)", "e(x_j)")
        directions = "in both directions" if settings.bidirectional else "from left to right"
        lines = [f"{cell} of size {settings.size}, {directions}", self.embedding.equation("x_j")]
        if settings.bidirectional:
            lines.append(f"h_j = [f_j; g_j],  f_j = {cell}(f_{{j-1}}, {x}),  g_j = {cell}(g_{{j+1}}, {y})")
            lines.append("summary = [f_M; g_1], the last state of each direction")
        else:
            lines.append(f"h_j = {cell}(h_{{j-1}}, {x});  summary = h_M, the last state")
        if attention is not None:
            lines += attention.equations("f" if settings.bidirectional else "h")
            if settings.bidirectional:
                lines.append("d_j = the same of the g_i, i > j, with weights of its own;  d_M = 0")
        if settings.layers > 1:
            lines.append(f"{settings.layers} layers, each reading the h_j of the one below")
        return [*lines, f"{cell}: {self.layers.cell.equation()}"]
