"""Embeddings e(y) of symbols: learned, one-hot, or pre-trained vectors from a file."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import embedding, one_hot

from seq2see.data.vocabulary import SPECIALS, UNK
from seq2see.dropout import SequenceDropout, dropout, replace_symbols
from seq2see.settings.base import FittedDropout, FittedSize, NoSettings, Parts, Settings, Share, Size

READ_BY_CELLS = 0.25
"""The least standard deviation of first embeddings that a recurrent encoder or decoder reads. Rows of length one have
numbers of 1 / 16 where there are 256 in a row: states begin close to zero, and all that is above learns slowly
(docs/results.md)."""


class LearnedSettings(Settings):
    """A learned embedding."""

    size: FittedSize = Field(128, description="numbers of each vector")


class PretrainedSettings(Settings):
    """An embedding from a file."""

    size: Size = Field(128, description="taken from the file")
    path: str | None = Field(None, description="text file of vectors (word2vec, GloVe or fastText)")
    tuned: bool = Field(True, description="train them further; false: frozen")


class EmbeddingSettings(Settings):
    """e(y): symbols as vectors."""

    parts = {"kind": Parts({"learned": LearnedSettings, "one-hot": NoSettings, "pretrained": PretrainedSettings})}
    kind: Literal["learned", "one-hot", "pretrained"] = Field("learned", description="where the vectors come from")
    dropout: FittedDropout = Field(0.0, description="on the vectors")
    symbol_dropout: Share = Field(
        0.0, description="share of symbols read as <unk> while training (word dropout); <sos> and <eos> are spared"
    )


def normal(*shape: int, times: float = 1.0, over: float = 1.0) -> Tensor:
    """Normal numbers, multiplied and divided; none on the meta device, where torch would import its compiler to draw
    them, which takes longer than all the rest of loading a small model."""
    made = torch.empty(*shape)
    return made if made.is_meta else made.normal_().mul_(times).div_(over)


class SymbolVectors(nn.Module):
    """Symbols as vectors; while training some symbols and some numbers are dropped. A kind writes `vectors_of`."""

    def __init__(self, size: int, *, dropout: float = 0.0, symbol_dropout: float = 0.0):
        super().__init__()
        self.size, self.dropout, self.symbol_dropout = size, dropout, symbol_dropout

    def forward(self, ids: Int[Tensor, "*rows"], dropped: SequenceDropout | None = None) -> Float[Tensor, "*rows size"]:
        """dropped: drops the same numbers of all symbols of a row (rows first); None: of each symbol its own."""
        read = replace_symbols(ids, self.symbol_dropout, self.training, by=UNK, first=len(SPECIALS))
        return dropout(self.vectors_of(read), self.dropout, self.training, alike=dropped, name="e")

    def vectors_of(self, ids: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows size"]:
        raise NotImplementedError


class Embedding(SymbolVectors):
    """e(y) = the row of E that belongs to the symbol y.

    size: the width of a row; origin: where its rows come from, in words, if they were not learned from the start;
    deviation: the least standard deviation of the first numbers. It is 1 / sqrt(size) otherwise, so that rows have
    about length one, as an output layer that shares them and a Transformer, which multiplies by sqrt(size), need them.
    """

    def __init__(
        self,
        symbols: int,
        size: int,
        *,
        dropout: float = 0.0,
        symbol_dropout: float = 0.0,
        origin: str = "",
        deviation: float = 0.0,
    ):
        super().__init__(size, dropout=dropout, symbol_dropout=symbol_dropout)
        self.origin = origin
        self.E = nn.Parameter(normal(symbols, size, over=min(size**0.5, 1 / deviation) if deviation else size**0.5))

    def vectors_of(self, ids: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows size"]:
        return embedding(ids, self.E)

    @property
    def weight(self) -> Tensor | None:
        """E, which an output layer may share."""
        return self.E

    def equation(self, symbol: str) -> str:
        """For `show`; symbol: what is embedded, such as 'x_j'."""
        return f"e({symbol}) = a row of E ({self.size} numbers{f', {self.origin}' if self.origin else ''})"


class OneHot(SymbolVectors):
    """e(y) = the y-th unit vector, which has no parameters."""

    def __init__(self, symbols: int, *, dropout: float = 0.0, symbol_dropout: float = 0.0):
        super().__init__(symbols, dropout=dropout, symbol_dropout=symbol_dropout)

    def vectors_of(self, ids: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows size"]:
        return one_hot(ids, self.size).float()

    @property
    def weight(self) -> None:
        return None

    def equation(self, symbol: str) -> str:
        return f"e({symbol}) the unit vector of the symbol (one-hot, nothing to learn)"


def build_embedding(
    settings: EmbeddingSettings,
    symbols: int,
    *,
    vectors: Float[Tensor, "symbols size"] | None = None,
    deviation: float = 0.0,
) -> Embedding | OneHot:
    """The embedding of the settings' kind; vectors: pre-trained rows, one per symbol; deviation: the least of
    learned ones.

    A pre-trained embedding may be built without its vectors when weights are about to be loaded over it.
    """
    if not isinstance(settings, LearnedSettings | PretrainedSettings):
        return OneHot(symbols, dropout=settings.dropout, symbol_dropout=settings.symbol_dropout)
    size, origin, frozen = settings.size if vectors is None else vectors.shape[1], "", False
    if isinstance(settings, PretrainedSettings):
        frozen = not settings.tuned
        origin = f"from {settings.path}, {'frozen' if frozen else 'tuned'}"
    embedding = Embedding(
        symbols,
        size,
        dropout=settings.dropout,
        symbol_dropout=settings.symbol_dropout,
        origin=origin,
        deviation=deviation,
    )
    if vectors is not None:
        embedding.E.data.copy_(vectors)
    if frozen:
        embedding.E.requires_grad_(False)
    return embedding
