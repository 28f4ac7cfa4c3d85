"""The hierarchical encoder: one level reads the words of each sentence, another the sentences of a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int, Shaped
from pydantic import Field
from torch import Tensor

from seq2see.attention.attention import Pooling
from seq2see.data.batches import Nested
from seq2see.dropout import SequenceDropout
from seq2see.embeddings import Embedding, EmbeddingSettings, OneHot, build_embedding
from seq2see.encoders.base import Encoded, Encoder, encoders, unused_summary
from seq2see.encoders.layers import LayerOutput, RecurrentLayers, masked_mean
from seq2see.encoders.positional_input import position_equation
from seq2see.encoders.transformer_layers import (
    LAYER,
    LEVELS,
    Level,
    RecurrentLevelSettings,
    TransformerLevel,
    TransformerLevelSettings,
    check_longest,
)
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import EncoderMap, Places, View
from seq2see.modalities.texts import TextsInput
from seq2see.registry import Problem
from seq2see.settings.base import FittedDropout, FittedSize, Layers, Parts, Size, no_effect
from seq2see.settings.columns import EncoderSettings
from seq2see.settings.columns import View as SettingsView
from seq2see.symbols import Symbols, default_symbols, symbols_of

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

Pooled = Literal["attention", "last", "mean"]


class HierarchicalEncoderSettings(EncoderSettings):
    """h_1 .. h_M: words become sentences, sentences a document; each level is a recurrent network or a Transformer."""

    reads: ClassVar[tuple[str, ...]] = ("texts",)
    lies: ClassVar[str] = "sentences"
    parts = {"levels": Parts(LEVELS)}
    for_texts: ClassVar[bool] = True
    kind: Literal["hierarchical"] = Field("hierarchical", description="a network over words, another over sentences")
    levels: Level | tuple[Level, Level] = Field(
        "recurrent",
        description="what reads words and sentences: a recurrent network, or layers of self-attention (words of a "
        "sentence look at each other, then sentences); two: that of words, that of sentences",
    )
    size: FittedSize = Field(256, description="size of a state (of each direction, if there are two)")
    layers: Layers = Field(1, description="number of layers in each level")
    dropout: FittedDropout = Field(
        0.0,
        description="recurrent levels: between layers and on the output of the last; transformer levels: on what "
        "enters them and on what each part of a layer gives",
    )
    words: Pooled = Field(
        "attention",
        description="how a sentence is computed from its words: their weighted mean, last state, or plain mean",
    )
    pooling: Pooled = Field(
        "last",
        description="how the summary is computed from the sentences: their weighted mean, last state, or plain mean",
    )
    pooling_size: Size = Field(128, description="attention: size of u = tanh(W h + b), of both levels")
    embedding: EmbeddingSettings = EmbeddingSettings()

    @property
    def word_level(self) -> Level:
        return self.levels if isinstance(self.levels, str) else self.levels[0]

    @property
    def sentence_level(self) -> Level:
        return self.levels if isinstance(self.levels, str) else self.levels[1]

    @property
    def layer_count(self) -> int:
        return 2 * self.layers

    def level_size(self, level: Level) -> int:
        """Numbers of each state that such a level gives."""
        both = level == "recurrent" and isinstance(self, RecurrentLevelSettings) and self.bidirectional
        return self.size * (2 if both else 1)

    @property
    def places_size(self) -> int:
        return self.level_size(self.sentence_level)

    @property
    def further(self) -> dict[str, SettingsView]:
        return {"words": (self.level_size(self.word_level), "tokens")}

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        yield from no_effect(self, path, ["pooling"], unused_summary(recipe, path))
        if "attention" not in (self.words, self.pooling) and path in recipe.encoders:
            yield from no_effect(self, path, ["pooling_size"], "no states are weighed")
        if isinstance(self, TransformerLevelSettings) and self.positions == "learned":
            lengths: dict[str, int] = {}
            for name in recipe.read_by.get(path, []):
                column = recipe.inputs[name]
                if self.word_level == "transformer" and isinstance(column, TextsInput):
                    lengths[f"inputs.{name}.max_length"] = column.max_length
                if self.sentence_level == "transformer" and isinstance(column, TextsInput):
                    lengths[f"inputs.{name}.max_sentences"] = column.max_sentences
            yield from check_longest(self.longest, f"{path}.longest", lengths)


@encoders.register("hierarchical")
class HierarchicalEncoder(Encoder):
    """Places are the states of the sentences; further places `words` are those of the words, with their sentences.

    >>> encoder = HierarchicalEncoder(HierarchicalEncoderSettings(size=4), symbols=10)
    >>> ids = torch.tensor([[[5, 6, 7], [8, 0, 0]]])
    >>> encoded = encoder(ids, ids > 0)
    >>> encoded.places.states.shape, encoded.further["words"].states.shape, encoded.further["words"].parent
    (torch.Size([1, 2, 8]), torch.Size([1, 4, 8]), tensor([[0, 0, 0, 1]]))
    """

    Settings = HierarchicalEncoderSettings

    layout: ClassVar[LayoutKind] = "sentences"  # type: ignore[misc]

    def __init__(
        self, settings: HierarchicalEncoderSettings, *, symbols: int, embedding: Embedding | OneHot | None = None
    ):
        super().__init__()
        self.settings = settings
        self.embedding = embedding if embedding is not None else build_embedding(settings.embedding, symbols)
        self.word_layers = _build_level(settings, settings.word_level, self.embedding.size, scale=settings.size**0.5)
        words = self.word_layers.size
        self.sentence_layers = _build_level(settings, settings.sentence_level, words, limit="max_sentences")
        self.size = self.summary_size = self.sentence_layers.size
        hidden = settings.pooling_size
        self.words, self.pooling = settings.words, settings.pooling
        self.word_pooling = Pooling(words, hidden=hidden, symbol="w") if settings.words == "attention" else None
        self.sentence_pooling = (
            Pooling(self.size, hidden=hidden, symbol="s") if settings.pooling == "attention" else None
        )
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
        """Reads the real sentences, and of each document at least the first one, even if it is empty.

        maps: also return self-attention of sentences, `self-1`, .., and of words, `words.self-1`, ..
        """
        real = mask.any(-1)
        if traced := torch.compiler.is_exporting():  # a graph has no sizes that depend on values: it reads them all
            chosen, inside = ids.flatten(0, 1), mask.flatten(0, 1)
        else:
            read = real.clone()
            read[:, 0] = True
            chosen, inside = ids[read], mask[read]
        variational = isinstance(self.word_layers, RecurrentLayers) and self.word_layers.variational
        vectors = self.embedding(chosen, SequenceDropout() if variational else None)
        words_read = _read(self.word_layers, vectors, inside, need_weights=maps)
        vectors, weights = _pool(words_read, self.words, self.word_pooling)
        if traced:
            sentences = vectors.unflatten(0, real.shape) * real[..., None]
        else:
            sentences = vectors.new_zeros(*real.shape, vectors.shape[-1])
            sentences[read] = vectors
        sentences_read = _read(self.sentence_layers, sentences, real, need_weights=maps)
        summary, _ = _pool(sentences_read, self.pooling, self.sentence_pooling)
        places = Places(sentences_read.states, real, Layout("sentences"), texts)
        words = _word_places(words_read.states, inside, mask, places, symbols)
        maps_by_name = {} if weights is None else {"words": _pooling_map(weights, inside, mask, words)}
        for name, each in sentences_read.weights.items():
            maps_by_name[name] = EncoderMap(each, real, real, places.layout)
        for name, each in words_read.weights.items():
            maps_by_name[f"words.{name}"] = _word_map(each, inside, words)
        return Encoded(places, summary, {"words": words}, maps_by_name)

    def equations(self) -> list[str]:
        settings = self.settings
        kinds = (settings.word_level, settings.sentence_level)
        pooled = {
            "attention": "{s} = sum_j a_j {h}_j,  a_j = softmax_j(u_{x} . tanh(W_{x} {h}_j + b_{x}))",
            "last": "{s} = the last {h}_j",
            "mean": "{s} = the mean of the {h}_j",
        }
        both = {kind: " of each direction, joined" * (settings.level_size(kind) > settings.size) for kind in kinds}
        words = pooled[settings.words].format(s="s_i", h="w_i", x="w")
        summary = pooled[settings.pooling].format(s="summary", h="h", x="s")
        over = [_title(settings, kind) for kind in kinds]
        levels = (self.word_layers, self.sentence_layers)
        cells = [level.cell for level in levels if isinstance(level, RecurrentLayers)]
        return [
            f"{over[0]} over words, {over[1]} over sentences" if len({*kinds}) > 1 else f"{over[0]} over both levels",
            self.embedding.equation("x_ij"),
            f"words of sentence i: w_i1, w_i2, ... = {over[0]} over e(x_i1), e(x_i2), ...",
            words + both[kinds[0]] * (settings.words == "last"),
            f"sentences: h_1 .. h_M = {over[1]} over s_1 .. s_M;  places are the h_i, or the words' own w_ij",
            summary + both[kinds[1]] * (settings.pooling == "last"),
            *([f"{settings.layers} layers on each level"] if settings.layers > 1 else []),
            *([f"{settings.cell}: {cells[0].equation()}"] if isinstance(settings, RecurrentLevelSettings) else []),
            *(_transformer_equations(settings) if isinstance(settings, TransformerLevelSettings) else []),
        ]

    def parameter_symbols(self) -> Symbols:
        symbols = default_symbols(self)
        for level, where in (("word_layers", "words"), ("sentence_layers", "sentences")):
            for key, symbol in symbols_of(self.get_submodule(level)).items():
                symbols[f"{level}.{key}"] = replace(symbol, where=", ".join(filter(None, (where, symbol.where))))
        return symbols


def _title(settings: HierarchicalEncoderSettings, kind: Level) -> str:
    if kind == "transformer" and isinstance(settings, TransformerLevelSettings):
        return f"self-attention of size {settings.size}, {settings.heads} heads,"
    assert isinstance(settings, RecurrentLevelSettings)
    directions = "both directions" if settings.bidirectional else "left to right"
    return f"{settings.cell}s of size {settings.size} ({directions})"


def _transformer_equations(settings: TransformerLevelSettings) -> list[str]:
    """How a level of self-attention reads v_1 .. v_M, which are embeddings or sentences."""
    where = position_equation(settings.positions, settings.longest, "j")
    return [
        f"self-attention over v_1 .. v_M: x_j = v_j (W_e v_j of another size; embeddings times sqrt(d)){where}",
        *LAYER,
        "h_j = norm(x_j)",
    ]


def _build_level(
    settings: HierarchicalEncoderSettings, kind: Level, width: int, *, limit: str = "max_length", scale: float = 1.0
) -> RecurrentLayers | TransformerLevel:
    """A level that reads vectors of that width.

    limit: the key of an input that limits their number; scale: of embeddings, which are small compared to the positions
    that are added to them.
    """
    if kind == "transformer" and isinstance(settings, TransformerLevelSettings):
        return TransformerLevel(settings, width, limit=limit, scale=scale)
    assert isinstance(settings, RecurrentLevelSettings)
    return RecurrentLayers(settings, width, bidirectional=settings.bidirectional)


def _read(
    level: RecurrentLayers | TransformerLevel, vectors: Tensor, mask: Tensor, *, need_weights: bool
) -> LayerOutput:
    read: LayerOutput = (
        level(vectors, mask, need_weights=need_weights) if isinstance(level, TransformerLevel) else level(vectors, mask)
    )
    return read


def _pool(
    read: LayerOutput, how: str, pooling: Pooling | None
) -> tuple[Float[Tensor, "rows size"], Float[Tensor, "rows places"] | None]:
    """One vector for each row, zeros where nothing is real; of attention also the weights."""
    if pooling is not None:
        vector, weights = pooling(read.states, read.mask)
        return vector, weights
    return (masked_mean(read.states, read.mask) if how == "mean" else read.last), None


def _in_a_row(
    values: Shaped[Tensor, "read words *size"],
    inside: Bool[Tensor, "read words"],
    mask: Bool[Tensor, "batch sentences words"],
) -> tuple[Shaped[Tensor, "batch places *size"], Bool[Tensor, "batch places"]]:
    """The values of all words of each document in a row, and which are real; padding, which is zero, comes last.

    values, inside: of the sentences that were read, and which of their words are real.
    """
    lengths = mask.sum((1, 2))
    if torch.compiler.is_exporting():  # all sentences were read; there is as much padding as there may be
        flat, numbers = mask.flatten(1), torch.arange(mask.shape[1] * mask.shape[2], device=mask.device)
        order = torch.where(flat, numbers, numbers + numbers.shape[0]).argsort(1)
        real = numbers < lengths[:, None]
        rows = values.unflatten(0, mask.shape[:2]).flatten(1, 2)
        more = (1,) * (rows.dim() - 2)
        return rows.gather(1, order.view(*order.shape, *more).expand(rows.shape)) * real.view(*real.shape, *more), real
    width = max(int(lengths.max()), 1) if len(lengths) else 1
    real = torch.arange(width, device=mask.device) < lengths[:, None]
    out = values.new_zeros(*real.shape, *values.shape[2:])
    out[real] = values[inside]
    return out, real


def _word_places(
    states: Float[Tensor, "read words size"],
    inside: Bool[Tensor, "read words"],
    mask: Bool[Tensor, "batch sentences words"],
    sentences: Places,
    symbols: list[list[list[str]]] | None,
) -> Places:
    """The words of each document; states: of the sentences that were read."""
    out, real = _in_a_row(states, inside, mask)
    numbers = torch.arange(mask.shape[1], device=mask.device)[:, None].expand(mask.shape)
    parent, _ = _in_a_row(numbers.flatten(0, 1), mask.flatten(0, 1), mask)
    tokens = None if symbols is None else [[word for sentence in row for word in sentence] for row in symbols]
    return Places(out, real, Layout("tokens"), tokens, parent, inside=sentences)


def _pooling_map(
    weights: Float[Tensor, "read words"],
    inside: Bool[Tensor, "read words"],
    mask: Bool[Tensor, "batch sentences words"],
    words: Places,
) -> EncoderMap:
    """One row per sentence: the weights of its words, zeros at all others."""
    if words.parent is None:
        raise ValueError("words need to know their sentences")
    sentences = mask.any(-1)
    own = words.parent[:, None] == torch.arange(mask.shape[1], device=mask.device)[:, None]
    row, _ = _in_a_row(weights, inside, mask)
    return EncoderMap(row[:, None] * own, sentences, words.mask, words.layout)


def _word_map(
    weights: Float[Tensor, "sentences heads width width"],
    inside: Bool[Tensor, "sentences width"],
    words: Places,
) -> EncoderMap:
    """The self-attention within sentences as a map over all words of a document: zeros between sentences."""
    heads, count = weights.shape[1], words.mask.shape[1]
    out = weights.new_zeros(len(words.mask), heads, count, count)
    sentence, position = inside.nonzero(as_tuple=True)
    row, place = words.mask.nonzero(as_tuple=True)  # both run over all words of all documents, in order
    first = torch.full((len(inside),), count, device=place.device).scatter_reduce(0, sentence, place, "amin")
    for j in range(inside.shape[1]):
        there = inside[sentence, j]
        own = sentence[there]
        out[row[there], :, place[there], first[own] + j] = weights[own, :, position[there], j]
    return EncoderMap(out, words.mask, words.mask, words.layout)
