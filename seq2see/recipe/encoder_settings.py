"""How an input is read: one class of settings for each kind of encoder."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from seq2see.recipe.basics import CellSettings, Count, EmbeddingSettings, Positive, Settings, Share


def by_kind(default: str) -> Discriminator:
    """Chooses among groups of keys by their `kind`, which need not be given."""

    def kind(given: Any) -> Any:
        return given.get("kind", default) if isinstance(given, dict) else getattr(given, "kind", default)

    return Discriminator(kind)


View = tuple[int, str]
"""Numbers in each place, and how places lie."""


class Reader(Settings):
    """What every encoder's settings tell of what it gives."""

    @property
    def further(self) -> dict[str, View]:
        """Other places of the same input, by the name that stands behind the input's own."""
        return {}


class RecurrentEncoderSettings(CellSettings, Reader):
    """h_1 .. h_M: how an input is read."""

    kind: Literal["recurrent"] = Field("recurrent", description="a recurrent network over the symbols")
    bidirectional: bool = Field(True, description="read in both directions, the states joined")
    self_attention: str = Field(
        "none", description="a score: each state looks back at the earlier ones of its direction; none: it does not"
    )
    embedding: EmbeddingSettings = EmbeddingSettings()

    @property
    def places_size(self) -> int:
        """Numbers in each h_j: what is looked at."""
        return self.size * (2 if self.bidirectional else 1)

    @property
    def summary_size(self) -> int:
        """Numbers in the summary: what starts a decoder or enters its every step."""
        return self.places_size

    @property
    def layout(self) -> str:
        """How its places lie."""
        return "tokens"


class TransformerEncoderSettings(Reader):
    """h_1 .. h_M: every place looks at all places, layer after layer (self-attention)."""

    kind: Literal["transformer"] = Field("transformer", description="layers of multi-head self-attention")
    size: Positive = Field(256, description="size of a place")
    layers: Positive = Field(3, description="one above the other")
    heads: Positive = Field(4, description="looks side by side in each layer; divides the size")
    feedforward: Positive = Field(1024, description="size of the inner layer behind each look")
    dropout: Share = Field(0.1, description="on what each part of a layer gives, and on the embeddings")
    positions: Literal["sinusoidal", "learned", "none"] = Field(
        "sinusoidal", description="how a place knows where it stands; none: the input is read as a set"
    )
    longest: Count = Field(512, description="learned positions: the longest input")
    embedding: EmbeddingSettings = EmbeddingSettings()

    @property
    def places_size(self) -> int:
        return self.size

    @property
    def summary_size(self) -> int:
        return self.size

    @property
    def layout(self) -> str:
        return "set" if self.positions == "none" else "tokens"


class HierarchicalEncoderSettings(CellSettings, Reader):
    """h_1 .. h_M: words become sentences, sentences a document, each level read by a recurrent network."""

    kind: Literal["hierarchical"] = Field("hierarchical", description="a network over words, another over sentences")
    bidirectional: bool = Field(True, description="both networks read in both directions, the states joined")
    words: Literal["attention", "last"] = Field(
        "attention", description="how a sentence comes from its words: their weighted mean, or their last state"
    )
    pooling: Literal["attention", "last"] = Field(
        "last", description="how the summary comes from the sentences: their weighted mean, or their last state"
    )
    pooling_size: Positive = Field(128, description="attention: size of u = tanh(W h + b), of both levels")
    embedding: EmbeddingSettings = EmbeddingSettings()

    @property
    def places_size(self) -> int:
        return self.size * (2 if self.bidirectional else 1)

    @property
    def summary_size(self) -> int:
        return self.places_size

    @property
    def layout(self) -> str:
        return "sentences"

    @property
    def further(self) -> dict[str, View]:
        return {"words": (self.places_size, "tokens")}


EncoderSettings = Annotated[
    Annotated[RecurrentEncoderSettings, Tag("recurrent")]
    | Annotated[TransformerEncoderSettings, Tag("transformer")]
    | Annotated[HierarchicalEncoderSettings, Tag("hierarchical")],
    by_kind("recurrent"),
]
