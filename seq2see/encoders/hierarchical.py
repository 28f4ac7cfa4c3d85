"""Words become sentences, sentences a document: two recurrent networks, one above the other."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.attention.pooling import Pooling
from seq2see.data.nested import Nested
from seq2see.embeddings import Embedding, OneHot, build_embedding
from seq2see.encoders.base import Encoded, Encoder, encoders
from seq2see.encoders.layers import Read, RecurrentLayers
from seq2see.memory import InnerMap, Layout, LayoutKind, Places, View
from seq2see.recipe.schema import HierarchicalEncoderSettings
from seq2see.recipe.words import cell_equation, embedding_equation


@encoders.register("hierarchical")
class HierarchicalEncoder(Encoder):
    """Places are the states of the sentences, further places `words` those of the words, which know their sentence.

    >>> encoder = HierarchicalEncoder(HierarchicalEncoderSettings(size=4), symbols=10)
    >>> ids = torch.tensor([[[5, 6, 7], [8, 0, 0]]])
    >>> encoded = encoder(ids, ids > 0)
    >>> encoded.places.states.shape, encoded.further["words"].states.shape, encoded.further["words"].parent
    (torch.Size([1, 2, 8]), torch.Size([1, 4, 8]), tensor([[0, 0, 0, 1]]))
    """

    layout: ClassVar[LayoutKind] = "sentences"  # type: ignore[misc]

    def __init__(
        self, settings: HierarchicalEncoderSettings, *, symbols: int, embedding: Embedding | OneHot | None = None
    ):
        super().__init__()
        self.embedding = embedding if embedding is not None else build_embedding(settings.embedding, symbols)
        both = settings.bidirectional
        self.word_layers = RecurrentLayers(settings, self.embedding.size, bidirectional=both)
        self.size = self.summary_size = self.word_layers.size
        self.sentence_layers = RecurrentLayers(settings, self.size, bidirectional=both)
        hidden = settings.pooling_size
        self.word_pooling = Pooling(self.size, hidden=hidden) if settings.words == "attention" else None
        self.sentence_pooling = Pooling(self.size, hidden=hidden) if settings.pooling == "attention" else None
        self.further = {"words": View(self.size, "tokens", inside=View(self.size, "sentences"))}

    def read(self, column: Nested, *, maps: bool = False) -> Encoded:
        return self(column.ids, column.mask, column.symbols, column.texts)  # type: ignore[no-any-return]

    def forward(
        self,
        ids: Int[Tensor, "batch sentences words"],
        mask: Bool[Tensor, "batch sentences words"],
        symbols: list[list[list[str]]] | None = None,
        texts: list[list[str]] | None = None,
    ) -> Encoded:
        """Only real sentences are read, and of each document the first one, even if it is empty."""
        real = mask.any(-1)
        read = real.clone()
        read[:, 0] = True
        inside = mask[read]
        words_read: Read = self.word_layers(self.embedding(ids[read]), inside)
        states, vectors, weights = words_read.states, words_read.last, None
        if self.word_pooling is not None:
            vectors, weights = self.word_pooling(states, inside)
        sentences: Float[Tensor, "batch sentences size"] = vectors.new_zeros(*real.shape, self.size)
        sentences[read] = vectors
        whole: Read = self.sentence_layers(sentences, real)
        documents, summary = whole.states, whole.last
        if self.sentence_pooling is not None:
            summary, _ = self.sentence_pooling(documents, real)
        places = Places(documents, real, Layout("sentences"), texts)
        words = _words(states[inside], mask, places, symbols)
        maps = {} if weights is None else {"words": _within(weights[inside], words, real)}
        return Encoded(places, summary, {"words": words}, maps)

    @classmethod
    def equations(cls, settings: HierarchicalEncoderSettings) -> list[str]:
        cell, both = settings.cell, "in both directions" if settings.bidirectional else "from left to right"
        pooled = {
            "attention": "{s} = sum_j a_j {h}_j,  a_j = softmax_j(u_{x} . tanh(W_{x} {h}_j + b_{x}))",
            "last": "{s} = the last {h}_j" + (" of each direction, joined" if settings.bidirectional else ""),
        }
        return [
            f"{cell}s of size {settings.size} over words and over sentences, {both}",
            embedding_equation(settings.embedding, "x_ij"),
            f"words of sentence i: w_i1, w_i2, ... = {cell}s over e(x_i1), e(x_i2), ...",
            pooled[settings.words].format(s="s_i", h="w_i", x="w"),
            f"sentences: h_1 .. h_M = {cell}s over s_1 .. s_M;  places are the h_i, or the words' own w_ij",
            pooled[settings.pooling].format(s="summary", h="h", x="s"),
            *([f"{settings.layers} layers on each level"] if settings.layers > 1 else []),
            f"{cell}: {cell_equation(settings)}",
        ]


def _words(
    states: Float[Tensor, "words size"],
    mask: Bool[Tensor, "batch sentences _"],
    sentences: Places,
    symbols: list[list[list[str]]] | None,
) -> Places:
    """The words of each document in a row, padding behind them; states: those of all documents, in order."""
    lengths = mask.sum((1, 2))
    width = max(int(lengths.max()), 1) if len(lengths) else 1
    real = torch.arange(width, device=mask.device) < lengths[:, None]
    out = states.new_zeros(*real.shape, states.shape[-1])
    out[real] = states
    parent = torch.zeros_like(real, dtype=torch.long)
    parent[real] = torch.arange(mask.shape[1], device=mask.device)[None, :, None].expand_as(mask)[mask]
    tokens = None if symbols is None else [[word for sentence in one for word in sentence] for one in symbols]
    return Places(out, real, Layout("tokens"), tokens, parent, inside=sentences)


def _within(weights: Float[Tensor, " words"], words: Places, sentences: Bool[Tensor, "batch sentences"]) -> InnerMap:
    """A row for each sentence: the weights of its own words, zero at all others."""
    if words.parent is None:
        raise ValueError("words need to know their sentences")
    out = weights.new_zeros(*sentences.shape, words.mask.shape[1])
    row, place = words.mask.nonzero(as_tuple=True)
    out[row, words.parent[row, place], place] = weights
    return InnerMap(out, sentences, words.mask, words.layout)
