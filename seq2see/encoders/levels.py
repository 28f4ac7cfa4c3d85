"""Self-attention over vectors that stand in a row: the words or sentences of a document, the frames of a video."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2see.encoders.entrance import Placing
from seq2see.encoders.layers import Read
from seq2see.encoders.transformer_layer import EncoderLayer, climb
from seq2see.recipe.schema import HierarchicalEncoderSettings, VideoEncoderSettings


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
        self.placing = Placing(
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
        self, vectors: Float[Tensor, "batch length width"], mask: Bool[Tensor, "batch length"], *, tell: bool = False
    ) -> Read:
        """With `tell` also where each layer looked: (batch, heads, length, length), by layer from the bottom."""
        layers = cast("Iterable[EncoderLayer]", self.layers)
        states, weights = climb(layers, self.placing(vectors), mask, tell=tell)
        states = self.norm(states)
        lengths = mask.sum(1)
        row = torch.arange(len(mask), device=mask.device)
        last = states[row, (lengths - 1).clamp(min=0)] * (lengths > 0)[:, None]
        return Read(states, last, mask, weights)
