"""e(y): symbols as vectors, learned, one-hot, or brought along from a file."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding, one_hot

from seq2see.settings.base import EmbeddingSettings


class Embedding(nn.Module):
    """e(y) as rows of E; `size` is the width of a row, `weight` is None for one-hot."""

    def __init__(self, symbols: int, size: int, *, dropout: float = 0.0):
        super().__init__()
        self.size = size
        self.dropout = dropout
        self.E = nn.Parameter(torch.randn(symbols, size) / size**0.5)

    def forward(self, ids: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows size"]:
        return dropout(embedding(ids, self.E), self.dropout, self.training)

    @property
    def weight(self) -> Tensor | None:
        return self.E


class OneHot(nn.Module):
    """e(y) is the y-th unit vector: nothing to learn."""

    def __init__(self, symbols: int, *, dropout: float = 0.0):
        super().__init__()
        self.size = symbols
        self.dropout = dropout

    def forward(self, ids: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows size"]:
        return dropout(one_hot(ids, self.size).float(), self.dropout, self.training)

    @property
    def weight(self) -> None:
        return None


def build_embedding(
    settings: EmbeddingSettings, symbols: int, *, vectors: Float[Tensor, "symbols size"] | None = None
) -> Embedding | OneHot:
    """The embedding a recipe asks for; `vectors` are the pre-trained rows, one per symbol, where it asks for those.

    A pre-trained embedding may be built without its vectors when weights are about to be loaded over it.
    """
    if settings.kind == "one-hot":
        return OneHot(symbols, dropout=settings.dropout)
    size = settings.size if vectors is None else vectors.shape[1]
    made = Embedding(symbols, size, dropout=settings.dropout)
    if vectors is not None:
        made.E.data.copy_(vectors)
    if settings.kind == "pretrained" and not settings.tuned:
        made.E.requires_grad_(False)
    return made
