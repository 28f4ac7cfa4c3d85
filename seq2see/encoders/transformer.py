"""h_1 .. h_M: every place looks at all places, layer after layer."""

from __future__ import annotations

from jaxtyping import Bool, Int
from torch import Tensor

from seq2see.data.batches import Sequences
from seq2see.embeddings import Embedding, OneHot, build_embedding
from seq2see.encoders.base import Encoded, Encoder, Material, encoders
from seq2see.encoders.entrance import Entrance
from seq2see.encoders.transformer_body import TransformerBody
from seq2see.encoders.transformer_layer import LAYER
from seq2see.encoders.transformer_picture import PictureTransformer
from seq2see.encoders.transformer_sound import SoundTransformer
from seq2see.memory import Layout
from seq2see.recipe.schema import TransformerEncoderSettings
from seq2see.recipe.words import embedding_equation, position_words


@encoders.register("transformer")
class TransformerEncoder(TransformerBody):
    """x_j = sqrt(d) e(x_j) + p_j, then layers of self-attention; `build` takes one for sounds or pictures where the
    settings say what a place of these is made of.

    >>> import torch
    >>> encoder = TransformerEncoder(TransformerEncoderSettings(size=8, feedforward=16), symbols=10)
    >>> encoder(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    entrance: Entrance

    def __init__(
        self, settings: TransformerEncoderSettings, *, symbols: int, embedding: Embedding | OneHot | None = None
    ):
        entrance = Entrance(
            embedding if embedding is not None else build_embedding(settings.embedding, symbols),
            size=settings.size,
            positions=settings.positions,
            longest=settings.longest,
            dropout=settings.dropout,
        )
        super().__init__(settings, entrance=entrance)

    @classmethod
    def build(cls, settings: TransformerEncoderSettings, material: Material) -> Encoder:
        if settings.patch is not None:
            return PictureTransformer(settings, channels=material.channels)
        if settings.stack is not None:
            return SoundTransformer(settings, width=material.channels)
        return super().build(settings, material)

    @property
    def embedding(self) -> Embedding | OneHot:
        return self.entrance.embedding

    def read(self, column: Sequences, *, maps: bool = False) -> Encoded:
        return self(column.ids, column.mask, column.symbols, maps=maps)  # type: ignore[no-any-return]

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        tokens: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        return self.climbed(self.entrance(ids), mask, Layout(self.layout), tokens, maps=maps)

    @classmethod
    def equations(cls, settings: TransformerEncoderSettings) -> list[str]:
        return [
            f"transformer of size {settings.size}, {settings.layers} layers of {settings.heads} heads",
            *_entering(settings),
            *LAYER,
            "h_j = norm(x_j);  summary = the mean of the h_j",
        ]


def _entering(settings: TransformerEncoderSettings) -> list[str]:
    where = position_words(settings.positions, settings.longest, "j")
    if settings.pixels is not None:
        down, across = settings.pixels
        return [
            f"m_1 .. m_M = patches of {down} x {across} pixels, from -1 to 1, row by row",
            f"x_j = W_p m_j + b_p{_in_a_grid(settings)}",
        ]
    if settings.stack is not None:
        joined = f"neighbouring frames, {settings.stack} joined" if settings.stack > 1 else "the frames"
        return [f"m_1 .. m_M = {joined}", f"x_j = W_p m_j + b_p{where}"]
    embedding = settings.embedding
    projected = "W_e " * (embedding.kind == "one-hot" or embedding.size != settings.size)
    return [embedding_equation(embedding, "x_j"), f"x_j = sqrt({settings.size}) {projected}e(x_j){where}"]


def _in_a_grid(settings: TransformerEncoderSettings) -> str:
    if settings.positions == "learned":
        return f" + p_r + p_c, rows of P_r and P_c for its row and column (at most {settings.longest} each)"
    return ", without positions" if settings.positions == "none" else " + [p_r; p_c], sines and cosines of both"
