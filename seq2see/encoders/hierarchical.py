"""Words become sentences, sentences a document: two networks, one above the other."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.attention.attention import Pooling
from seq2see.data.batches import Nested
from seq2see.embeddings import Embedding, OneHot, build_embedding
from seq2see.encoders.base import Encoded, Encoder, encoders
from seq2see.encoders.layers import LayerOutput, RecurrentLayers, masked_mean
from seq2see.encoders.transformer_layers import LAYER, TransformerLevel
from seq2see.memory import EncoderMap, Layout, LayoutKind, Places, View
from seq2see.settings.encoders import HierarchicalEncoderSettings, Level
from seq2see.settings.equations import cell_equation, embedding_equation, position_words


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
        self.word_layers = _level(settings, settings.word_level, self.embedding.size, scale=settings.size**0.5)
        words = self.word_layers.size
        self.sentence_layers = _level(settings, settings.sentence_level, words, limit="max_sentences")
        self.size = self.summary_size = self.sentence_layers.size
        hidden = settings.pooling_size
        self.words, self.pooling = settings.words, settings.pooling
        self.word_pooling = Pooling(words, hidden=hidden) if settings.words == "attention" else None
        self.sentence_pooling = Pooling(self.size, hidden=hidden) if settings.pooling == "attention" else None
        self.further = {"words": View(words, "tokens", inside=View(self.size, "sentences"))}

    def read(self, column: Nested, *, maps: bool = False) -> Encoded:
        return self(column.ids, column.mask, column.symbols, column.texts, maps=maps)  # type: ignore[no-any-return]

    def forward(
        self,
        ids: Int[Tensor, "batch sentences words"],
        mask: Bool[Tensor, "batch sentences words"],
        symbols: list[list[list[str]]] | None = None,
        texts: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        """Only real sentences are read, and of each document the first one, even if it is empty.

        maps: also tell where levels of self-attention looked: sentences `self-1`, .., words `words.self-1`, ..
        """
        real = mask.any(-1)
        read = real.clone()
        read[:, 0] = True
        inside = mask[read]
        each = _read(self.word_layers, self.embedding(ids[read]), inside, need_weights=maps)
        vectors, weights = _pooled(each, self.words, self.word_pooling)
        sentences: Float[Tensor, "batch sentences size"] = vectors.new_zeros(*real.shape, vectors.shape[-1])
        sentences[read] = vectors
        whole = _read(self.sentence_layers, sentences, real, need_weights=maps)
        summary, _ = _pooled(whole, self.pooling, self.sentence_pooling)
        places = Places(whole.states, real, Layout("sentences"), texts)
        words = _words(each.states[inside], mask, places, symbols)
        inner = {} if weights is None else {"words": _within(weights[inside], words, real)}
        inner |= {name: EncoderMap(one, real, real, places.layout) for name, one in whole.weights.items()}
        inner |= {f"words.{name}": _among(one, inside, words) for name, one in each.weights.items()}
        return Encoded(places, summary, {"words": words}, inner)

    @classmethod
    def equations(cls, settings: HierarchicalEncoderSettings) -> list[str]:
        kinds = (settings.word_level, settings.sentence_level)
        pooled = {
            "attention": "{s} = sum_j a_j {h}_j,  a_j = softmax_j(u_{x} . tanh(W_{x} {h}_j + b_{x}))",
            "last": "{s} = the last {h}_j",
            "mean": "{s} = the mean of the {h}_j",
        }
        both = {kind: " of each direction, joined" * (kind == "recurrent" and settings.bidirectional) for kind in kinds}
        words = pooled[settings.words].format(s="s_i", h="w_i", x="w")
        summary = pooled[settings.pooling].format(s="summary", h="h", x="s")
        over = [_named(settings, kind) for kind in kinds]
        return [
            f"{over[0]} over words, {over[1]} over sentences" if len({*kinds}) > 1 else f"{over[0]} over both levels",
            embedding_equation(settings.embedding, "x_ij"),
            f"words of sentence i: w_i1, w_i2, ... = {over[0]} over e(x_i1), e(x_i2), ...",
            words + both[kinds[0]] * (settings.words == "last"),
            f"sentences: h_1 .. h_M = {over[1]} over s_1 .. s_M;  places are the h_i, or the words' own w_ij",
            summary + both[kinds[1]] * (settings.pooling == "last"),
            *([f"{settings.layers} layers on each level"] if settings.layers > 1 else []),
            *([f"{settings.cell}: {cell_equation(settings)}"] if "recurrent" in kinds else []),
            *(_level_equations(settings) if "transformer" in kinds else []),
        ]


def _named(settings: HierarchicalEncoderSettings, kind: Level) -> str:
    if kind == "transformer":
        return f"self-attention of size {settings.size}, {settings.heads} heads,"
    both = "both directions" if settings.bidirectional else "left to right"
    return f"{settings.cell}s of size {settings.size} ({both})"


def _level_equations(settings: HierarchicalEncoderSettings) -> list[str]:
    """How a level of self-attention reads v_1 .. v_M, which are embeddings or sentences."""
    where = position_words(settings.positions, settings.longest, "j")
    return [
        f"self-attention over v_1 .. v_M: x_j = v_j (W_e v_j of another size; embeddings times sqrt(d)){where}",
        *LAYER,
        "h_j = norm(x_j)",
    ]


def _level(
    settings: HierarchicalEncoderSettings, kind: Level, width: int, *, limit: str = "max_length", scale: float = 1.0
) -> RecurrentLayers | TransformerLevel:
    """What reads vectors of that width.

    limit: the key of an input that says how many of them there are; scale: of embeddings, which are small, where
    positions are added to them.
    """
    if kind == "transformer":
        return TransformerLevel(settings, width, limit=limit, scale=scale)
    return RecurrentLayers(settings, width, bidirectional=settings.bidirectional)


def _read(
    level: RecurrentLayers | TransformerLevel, vectors: Tensor, mask: Tensor, *, need_weights: bool
) -> LayerOutput:
    read: LayerOutput = (
        level(vectors, mask, need_weights=need_weights) if isinstance(level, TransformerLevel) else level(vectors, mask)
    )
    return read


def _pooled(
    read: LayerOutput, how: str, pooling: Pooling | None
) -> tuple[Float[Tensor, "rows size"], Float[Tensor, "rows places"] | None]:
    """One vector for each row, zeros where nothing is real; where it is a weighted mean, with the weights."""
    if pooling is not None:
        vector, weights = pooling(read.states, read.mask)
        return vector, weights
    return (masked_mean(read.states, read.mask) if how == "mean" else read.last), None


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


def _within(weights: Float[Tensor, " words"], words: Places, sentences: Bool[Tensor, "batch sentences"]) -> EncoderMap:
    """A row for each sentence: the weights of its own words, zero at all others."""
    if words.parent is None:
        raise ValueError("words need to know their sentences")
    out = weights.new_zeros(*sentences.shape, words.mask.shape[1])
    row, place = words.mask.nonzero(as_tuple=True)
    out[row, words.parent[row, place], place] = weights
    return EncoderMap(out, sentences, words.mask, words.layout)


def _among(
    weights: Float[Tensor, "sentences heads width width"],
    inside: Bool[Tensor, "sentences width"],
    words: Places,
) -> EncoderMap:
    """How words looked at those of their sentence, as a map of all words of a document: zero between sentences."""
    heads, count = weights.shape[1], words.mask.shape[1]
    out = weights.new_zeros(len(words.mask), heads, count, count)
    sentence, position = inside.nonzero(as_tuple=True)
    row, place = words.mask.nonzero(as_tuple=True)  # both run over all words of all documents, in order
    first = torch.full((len(inside),), count, device=place.device).scatter_reduce(0, sentence, place, "amin")
    for j in range(inside.shape[1]):
        there = inside[sentence, j]
        asked = sentence[there]
        out[row[there], :, place[there], first[asked] + j] = weights[asked, :, position[there], j]
    return EncoderMap(out, words.mask, words.mask, words.layout)
