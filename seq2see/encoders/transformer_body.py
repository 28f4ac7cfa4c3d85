"""What Transformer encoders of all inputs have in common: layers of self-attention above whatever enters them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2see.encoders.base import Encoded, Encoder
from seq2see.encoders.means import masked_mean
from seq2see.encoders.transformer_layer import EncoderLayer, climb
from seq2see.memory import InnerMap, Layout, LayoutKind, Places
from seq2see.recipe.schema import TransformerEncoderSettings


class TransformerBody(Encoder):
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

    def climbed(
        self,
        states: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        layout: Layout,
        tokens: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        """maps: also tell where each layer looked, `self-1`, `self-2`, ... from the bottom to the top."""
        states, weights = climb(cast("Iterable[EncoderLayer]", self.layers), states, mask, tell=maps)
        inner = {name: InnerMap(one, mask, mask, layout) for name, one in weights.items()}
        states = self.norm(states)
        return Encoded(Places(states, mask, layout, tokens), masked_mean(states, mask), maps=inner)
