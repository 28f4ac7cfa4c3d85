"""Deep sets, an encoder without order: each element is transformed alone, then all are pooled (Zaheer et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from seq2see.data.batches import Sequences
from seq2see.embeddings import Embedding, EmbeddingSettings, OneHot, build_embedding
from seq2see.encoders.base import Encoded, Encoder, encoders, unused_summary
from seq2see.encoders.layers import Perceptron, masked_mean
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import Places
from seq2see.registry import Problem
from seq2see.settings.base import MOST_LAYERS, Layers, Share, Size, no_effect
from seq2see.settings.columns import EncoderSettings, InputColumn
from seq2see.symbols import Symbols, prefixed, symbols_of

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class DeepSetsEncoderSettings(EncoderSettings):
    """h_1 .. h_M: every place for itself, the summary from their sum; no order (deep sets)."""

    reads: ClassVar[tuple[str, ...]] = ("set", "text")
    lies: ClassVar[str] = "set"
    kind: Literal["deep-sets"] = Field("deep-sets", description="phi of each symbol alone, rho of all of them pooled")
    size: Size = Field(256, description="size of a place, of the summary, and of the layers between")
    layers: Layers = Field(2, description="of phi, which makes a symbol a place")
    pooling: Literal["sum", "mean", "max"] = Field(
        "sum", description="how places become one vector; only sum shows how often a symbol occurs"
    )
    summary_layers: Annotated[int, Field(ge=0, le=MOST_LAYERS)] | None = Field(
        None, description="of rho, after the pooling; not given: 2 if the summary is used, otherwise 0"
    )
    dropout: Share = Field(0.0, description="on what each layer gives")
    embedding: EmbeddingSettings = EmbeddingSettings()

    def complete(self, column: InputColumn, *, summary_used: bool, shared: bool) -> dict[str, Any]:
        """No rho behind a summary that nobody uses."""
        return {"summary_layers": RHO if summary_used else 0} if self.summary_layers is None else {}

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        reason = unused_summary(recipe, path)
        yield from no_effect(self, path, ["pooling"], reason)
        if reason and self.summary_layers:
            yield Problem(f"{path}.summary_layers", reason, "no-effect", no_effect=True)


RHO = 2
"""Layers of rho where the summary is used and the recipe does not state them."""


@encoders.register("deep-sets")
class DeepSetsEncoder(Encoder):
    """Places are phi(element), the summary is rho of their sum, mean or maximum: independent of the elements' order.

    >>> encoder = DeepSetsEncoder(DeepSetsEncoderSettings(size=8, summary_layers=2), symbols=10)
    >>> encoder(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    Settings = DeepSetsEncoderSettings

    layout: ClassVar[LayoutKind] = "set"  # type: ignore[misc]

    def __init__(self, settings: DeepSetsEncoderSettings, *, symbols: int, embedding: Embedding | OneHot | None = None):
        super().__init__()
        self.size = self.summary_size = settings.size
        self.settings, self.pooling = settings, settings.pooling
        self.embedding = embedding if embedding is not None else build_embedding(settings.embedding, symbols)
        self.phi = Perceptron(self.embedding.size, self.size, layers=settings.layers, dropout=settings.dropout)
        self.rho = Perceptron(self.size, self.size, layers=settings.summary_layers or 0, dropout=settings.dropout)

    def read(self, column: Sequences, *, maps: bool = False) -> Encoded:
        return self(column.ids, column.mask, column.symbols)  # type: ignore[no-any-return]

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        tokens: list[list[str]] | None = None,
    ) -> Encoded:
        states: Tensor = self.phi(self.embedding(ids))
        return Encoded(Places(states, mask, Layout("set"), tokens), self.rho(self._pool(states, mask)))

    def _pool(
        self, states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> Float[Tensor, "batch size"]:
        """The real places as one vector; zeros where no place is real."""
        if self.pooling == "mean":
            return masked_mean(states, mask)
        real = mask[..., None]
        if self.pooling == "sum":
            return (states * real).sum(1)
        largest = states.masked_fill(~real, torch.finfo(states.dtype).min).amax(1)
        return torch.where(mask.any(1, keepdim=True), largest, 0.0)

    def equations(self) -> list[str]:
        pooled = {"sum": "sum_j h_j", "mean": "the mean of the h_j", "max": "the largest of the h_j, number by number"}
        rho = f"rho(p),  p = {pooled[self.pooling]}" if len(self.rho) else pooled[self.pooling]
        return [
            f"deep sets of size {self.size}: the elements have no order",
            self.embedding.equation("x_j"),
            f"h_j = phi(e(x_j)),  phi(x) = {self.phi.equation('x')}",
            f"summary = {rho}",
            *([f"rho(x) = {self.rho.equation('x')}"] if len(self.rho) else []),
        ]

    def parameter_symbols(self) -> Symbols:
        networks = {"phi": self.phi, "rho": self.rho}
        symbols = prefixed("embedding", symbols_of(self.embedding))
        for name, network in networks.items():
            symbols |= prefixed(name, symbols_of(network), where=name)
        return symbols
