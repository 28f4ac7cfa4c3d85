"""h_1 .. h_M: every place looks at all places, layer after layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from jaxtyping import Bool, Int
from torch import Tensor, nn

from seq2see.data.batches import Sequences
from seq2see.embeddings import Embedding, OneHot, build_embedding
from seq2see.encoders.base import Encoded, Encoder, encoders
from seq2see.encoders.entrance import Entrance
from seq2see.encoders.means import masked_mean
from seq2see.encoders.transformer_layer import EncoderLayer, climb
from seq2see.memory import InnerMap, Layout, LayoutKind, Places
from seq2see.recipe.schema import TransformerEncoderSettings
from seq2see.recipe.words import embedding_equation, position_words

LAYER = (
    "each layer: x_j = x_j + self(norm(x))_j;  x_j = x_j + W_2 relu(W_1 norm(x_j) + b_1) + b_2",
    "self(x)_i = W_o [c_i of each head] + b_o,  c_i = sum_j softmax_j(W_q x_i . W_k x_j / sqrt(d)) W_v x_j",
)
"""What every layer of self-attention does, in the words of the specification."""


@encoders.register("transformer")
class TransformerEncoder(Encoder):
    """Places are the states of the last layer, normalised; the summary is their mean.

    >>> import torch
    >>> encoder = TransformerEncoder(TransformerEncoderSettings(size=8, feedforward=16), symbols=10)
    >>> encoder(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self, settings: TransformerEncoderSettings, *, symbols: int, embedding: Embedding | OneHot | None = None
    ):
        super().__init__()
        self.size = self.summary_size = settings.size
        self.layout = cast(LayoutKind, settings.layout)
        self.entrance = Entrance(
            embedding if embedding is not None else build_embedding(settings.embedding, symbols),
            size=settings.size,
            positions=settings.positions,
            longest=settings.longest,
            dropout=settings.dropout,
        )
        self.layers = nn.ModuleList(EncoderLayer.of(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.size)

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
        """maps: also tell where each layer looked, `self-1`, `self-2`, ... from the bottom to the top."""
        layers, layout = cast("Iterable[EncoderLayer]", self.layers), Layout(self.layout)
        states, weights = climb(layers, self.entrance(ids), mask, tell=maps)
        inner = {name: InnerMap(one, mask, mask, layout) for name, one in weights.items()}
        states = self.norm(states)
        return Encoded(Places(states, mask, layout, tokens), masked_mean(states, mask), maps=inner)

    @classmethod
    def equations(cls, settings: TransformerEncoderSettings) -> list[str]:
        embedding = settings.embedding
        projected = "W_e " * (embedding.kind == "one-hot" or embedding.size != settings.size)
        return [
            f"transformer of size {settings.size}, {settings.layers} layers of {settings.heads} heads",
            embedding_equation(settings.embedding, "x_j"),
            f"x_j = sqrt({settings.size}) {projected}e(x_j)"
            + position_words(settings.positions, settings.longest, "j"),
            *LAYER,
            "h_j = norm(x_j);  summary = the mean of the h_j",
        ]
