"""One layer of a Transformer's encoder, and several of them one above the other."""

from __future__ import annotations

from collections.abc import Iterable

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import dropout

from seq2see.attention import SelfAttention
from seq2see.encoders.feed_forward import FeedForward
from seq2see.recipe.schema import HierarchicalEncoderSettings, TransformerEncoderSettings, VideoEncoderSettings

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
        tell: bool = False,
    ) -> tuple[Float[Tensor, "batch places size"], Float[Tensor, "batch heads places places"] | None]:
        normal = self.norm_1(states)
        found, weights = self.inward(normal, *self.inward.keys_and_values(normal), mask=mask[:, None], tell=tell)
        states = states + dropout(found, self.dropout, self.training)
        thought = self.feed(self.norm_2(states))
        return states + dropout(thought, self.dropout, self.training), weights


def climb(
    layers: Iterable[EncoderLayer],
    states: Float[Tensor, "batch places size"],
    mask: Bool[Tensor, "batch places"],
    *,
    tell: bool,
) -> tuple[Float[Tensor, "batch places size"], dict[str, Float[Tensor, "batch heads places places"]]]:
    """From the bottom layer to the top one; with `tell` where real places of each looked (`self-1`, ..)."""
    told: dict[str, Tensor] = {}
    for number, layer in enumerate(layers, start=1):
        states, weights = layer(states, mask, tell=tell)
        if weights is not None:
            told[f"self-{number}"] = weights * mask[:, None, :, None]
    return states, told
