"""Transformer encoder layers, and stacks of them over symbols or vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import dropout

from seq2see.attention import SelfAttention
from seq2see.encoders.base import Encoded, Encoder
from seq2see.encoders.layers import FeedForward, LayerOutput, masked_mean
from seq2see.encoders.positional_input import PositionalInput
from seq2see.memory import EncoderMap, Layout, LayoutKind, Places
from seq2see.settings.encoders import HierarchicalEncoderSettings, TransformerEncoderSettings, VideoEncoderSettings

# ---------------- One layer of a Transformer's encoder, and several of them one above the other

LAYER = (
    "each layer: x_j = x_j + self(norm(x))_j;  x_j = x_j + W_2 relu(W_1 norm(x_j) + b_1) + b_2",
    "self(x)_i = W_o [c_i of each head] + b_o,  c_i = sum_j softmax_j(W_q x_i . W_k x_j / sqrt(d)) W_v x_j",
)
"""What every layer of self-attention does, in the words of the specification."""


class EncoderLayer(nn.Module):
    """x = x + self(norm(x)); x = x + feed(norm(x)): normalised before each part, so that deep ones learn at once."""

    def __init__(self, size: int, *, heads: int, feedforward: int, dropout: float, rotary: bool = False):
        super().__init__()
        self.dropout = dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.inward = SelfAttention(size, heads=heads, rotary=rotary)
        self.feed = FeedForward(size, feedforward)

    @classmethod
    def of(
        cls, settings: TransformerEncoderSettings | HierarchicalEncoderSettings | VideoEncoderSettings
    ) -> EncoderLayer:
        """One as a recipe asks for it."""
        return cls(
            settings.size,
            heads=settings.heads,
            feedforward=settings.feedforward,
            dropout=settings.dropout,
            rotary=settings.positions == "rotary",
        )

    def forward(
        self,
        states: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch places size"], Float[Tensor, "batch heads places places"] | None]:
        normal = self.norm_1(states)
        found, weights = self.inward(
            normal, *self.inward.keys_and_values(normal), mask=mask[:, None], need_weights=need_weights
        )
        states = states + dropout(found, self.dropout, self.training)
        thought = self.feed(self.norm_2(states))
        return states + dropout(thought, self.dropout, self.training), weights


def run_layers(
    layers: Iterable[EncoderLayer],
    states: Float[Tensor, "batch places size"],
    mask: Bool[Tensor, "batch places"],
    *,
    need_weights: bool,
) -> tuple[Float[Tensor, "batch places size"], dict[str, Float[Tensor, "batch heads places places"]]]:
    """From the bottom layer to the top one; with `tell` where real places of each looked (`self-1`, ..)."""
    told: dict[str, Tensor] = {}
    for number, layer in enumerate(layers, start=1):
        states, weights = layer(states, mask, need_weights=need_weights)
        if weights is not None:
            told[f"self-{number}"] = weights * mask[:, None, :, None]
    return states, told


# ---------------- What Transformer encoders of all inputs have in common


class TransformerBase(Encoder):
    """Places are the states of the last layer, normalised; the summary is their mean.

    entrance: the modules that stand below the layers, by the names they have on the encoder. They come first, so that
    weights are drawn, listed and resumed from the bottom to the top.
    """

    def __init__(self, settings: TransformerEncoderSettings, **entrance: nn.Module):
        super().__init__()
        for name, module in entrance.items():
            self.add_module(name, module)
        self.size = self.summary_size = settings.size
        self.layout = cast(LayoutKind, settings.layout)
        self.layers = nn.ModuleList(EncoderLayer.of(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.size)

    def encode(
        self,
        states: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        layout: Layout,
        tokens: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        """maps: also tell where each layer looked, `self-1`, `self-2`, ... from the bottom to the top."""
        states, weights = run_layers(cast("Iterable[EncoderLayer]", self.layers), states, mask, need_weights=maps)
        inner = {name: EncoderMap(one, mask, mask, layout) for name, one in weights.items()}
        states = self.norm(states)
        return Encoded(Places(states, mask, layout, tokens), masked_mean(states, mask), maps=inner)


# ---------------- Self-attention over vectors that stand in a row


class TransformerLevel(nn.Module):
    """h_1 .. h_M from v_1 .. v_M: where each stands is added, then every place looks at all, layer after layer.

    Each row is read for itself: words of a sentence see those of no other. `last` is the state of the last real place,
    which has seen all of them; zeros where there is none.

    >>> level = TransformerLevel(HierarchicalEncoderSettings(size=8, feedforward=16), 3)
    >>> read = level(torch.zeros(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))
    >>> read.states.shape, read.last.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 8]))
    """

    def __init__(
        self,
        settings: HierarchicalEncoderSettings | VideoEncoderSettings,
        width: int,
        *,
        limit: str = "max_length",
        scale: float = 1.0,
    ):
        super().__init__()
        self.size = settings.size
        self.placing = PositionalInput(
            width,
            size=settings.size,
            positions=settings.positions,
            longest=settings.longest,
            dropout=settings.dropout,
            key="encoder",
            limit=limit,
            scale=scale,
        )
        self.layers = nn.ModuleList(EncoderLayer.of(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.size)

    def forward(
        self,
        vectors: Float[Tensor, "batch length width"],
        mask: Bool[Tensor, "batch length"],
        *,
        need_weights: bool = False,
    ) -> LayerOutput:
        """With `tell` also where each layer looked: (batch, heads, length, length), by layer from the bottom."""
        layers = cast("Iterable[EncoderLayer]", self.layers)
        states, weights = run_layers(layers, self.placing(vectors), mask, need_weights=need_weights)
        states = self.norm(states)
        lengths = mask.sum(1)
        row = torch.arange(len(mask), device=mask.device)
        last = states[row, (lengths - 1).clamp(min=0)] * (lengths > 0)[:, None]
        return LayerOutput(states, last, mask, weights)
