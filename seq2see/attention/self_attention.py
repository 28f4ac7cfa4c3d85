"""A sequence that looks at itself: several scaled dot products side by side, as in a Transformer."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from seq2see.attention.normalisers import masked, softmax
from seq2see.attention.rotary import rotated
from seq2see.errors import UserError


class SelfAttention(nn.Module):
    """c_i = W_o [c_i^1; ..; c_i^H] + b_o, with c_i^n = sum_j softmax_j(q_i . k_j / sqrt(d)) v_j in each head.

    Keys and values are handed in beside the states that ask, so that a decoder may keep those of earlier steps. Where
    nobody wants to see the weights, torch's fused product computes the same without ever holding them.
    rotary: q_i and k_j are turned by where they stand, so that their product knows how far apart they are. Keys are
    handed in and kept unturned; those who ask are the last of the places.
    """

    def __init__(self, size: int, *, heads: int, rotary: bool = False):
        super().__init__()
        if size % heads:
            raise UserError(f"heads: {heads} heads need a size which they divide, got {size}")
        if rotary and size // heads % 2:
            raise UserError(f"positions: rotary turns pairs of numbers, and {size // heads} in each head is odd")
        self.size, self.heads, self.rotary = size, heads, rotary
        self.W_q = nn.Linear(size, size)
        self.W_k = nn.Linear(size, size)
        self.W_v = nn.Linear(size, size)
        self.W_o = nn.Linear(size, size)

    def keys_and_values(
        self, states: Float[Tensor, "rows places size"]
    ) -> tuple[Float[Tensor, "rows heads places part"], Float[Tensor, "rows heads places part"]]:
        return self._split(self.W_k(states)), self._split(self.W_v(states))

    def forward(
        self,
        states: Float[Tensor, "rows queries size"],
        keys: Float[Tensor, "rows heads places part"],
        values: Float[Tensor, "rows heads places part"],
        *,
        mask: Bool[Tensor, "#rows #queries places"] | None = None,
        tell: bool = False,
    ) -> tuple[Float[Tensor, "rows queries size"], Float[Tensor, "rows heads queries places"] | None]:
        """What each state finds, and with `tell` the weights. mask: which places each may see, None: all of them.

        A state that may see no place finds nothing, so that b_o alone comes back, and no weight is learned from it.
        """
        asked = self._split(self.W_q(states))
        if self.rotary:
            asked, keys = rotated(asked, keys.shape[2] - states.shape[1]), rotated(keys, 0)
        if tell:
            found, weights = self._told(asked, keys, values, mask)
        else:
            found, weights = _fused(asked, keys, values, mask), None
        return self.W_o(found.transpose(1, 2).flatten(2)), weights

    def _told(self, asked: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        energies = asked @ keys.transpose(-1, -2) / keys.shape[-1] ** 0.5
        if mask is None:
            weights = softmax(energies)
        else:
            each = mask.expand(len(energies), -1, -1).repeat_interleave(self.heads, 0)
            weights = masked(softmax, energies.flatten(0, 1), each).view_as(energies)
        return weights.to(values.dtype) @ values, weights

    def _split(self, vectors: Float[Tensor, "rows places size"]) -> Float[Tensor, "rows heads places part"]:
        parts: Tensor = vectors.unflatten(-1, (self.heads, -1))
        return parts.transpose(1, 2)


def _fused(asked: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """torch's product. Who may see nothing is let see everything, and what it finds taken away: no NaN comes up."""
    if mask is None:
        return scaled_dot_product_attention(asked, keys, values)
    somebody = mask.any(-1, keepdim=True)
    found = scaled_dot_product_attention(asked, keys, values, attn_mask=(mask | ~somebody)[:, None])
    return found * somebody[:, None]
