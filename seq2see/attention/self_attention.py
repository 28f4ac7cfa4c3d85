"""Self-attention: multi-head scaled dot products with rotary positions, and intra-attention in recurrent encoders."""

from __future__ import annotations

import math
import re

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from seq2see.attention.normalisers import masked, softmax
from seq2see.attention.records import Candidates
from seq2see.attention.scores import build_score, compute_energies, compute_keys, equation_of, scores
from seq2see.deferred_gradients import DeferredCache, Product, plain_product
from seq2see.errors import UserError
from seq2see.memory import Layout

# ---------------- Where a symbol stands, told by turning queries and keys


def rotate(vectors: Float[Tensor, "rows heads places part"], first: int) -> Float[Tensor, "rows heads places part"]:
    """Each pair of numbers (i, i + part / 2) at place j turned by the angle (first + j) w_i, w_i from 1 to 1 / 10,000.

    The product of a query at t and a key at j then depends on t - j alone (Su et al. 2021): both may be counted from
    anywhere, so that a text without end needs no large numbers.

    >>> q, k = torch.randn(2, 1, 1, 1, 4)
    >>> near, far = ((rotate(q, t + 3) * rotate(k, t)).sum() for t in (0, 500))
    >>> bool((near - far).abs() < 1e-4)
    True
    """
    places, half = vectors.shape[-2], vectors.shape[-1] // 2
    rates = torch.exp(torch.arange(half, device=vectors.device) * (-math.log(10_000.0) / half))
    angles = torch.arange(first, first + places, device=vectors.device)[:, None] * rates
    sine, cosine = angles.sin(), angles.cos()
    left, right = vectors.float().chunk(2, dim=-1)
    turned = torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)
    return turned.to(vectors.dtype)


# ---------------- A sequence that looks at itself


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
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "rows queries size"], Float[Tensor, "rows heads queries places"] | None]:
        """What each state finds, and with `tell` the weights. mask: which places each may see, None: all of them.

        A state that may see no place finds nothing, so that b_o alone comes back, and no weight is learned from it.
        """
        asked = self._split(self.W_q(states))
        if self.rotary:
            asked, keys = rotate(asked, keys.shape[2] - states.shape[1]), rotate(keys, 0)
        if need_weights:
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


# ---------------- Intra-attention


class IntraAttention(nn.Module):
    """c_j = sum_{i<j} a_ji h_i, a_j = softmax over i < j of score(q_j, h_i), q_j = Q_x x_j + Q_h h_{j-1}.

    The query holds the symbol that is being read beside the state before it (as in Cheng, Dong and Lapata 2016): what
    is worth looking back at depends on what has just come. It has the size of the states, so that any score fits.
    A score that nobody asks (static, uniform) has no query.
    """

    def __init__(self, score: str, *, width: int, size: int):
        super().__init__()
        kind = scores[score]
        if kind.ordered or kind.remembers:
            raise UserError(f"encoder.self_attention: {score} goes by where places lie, or by earlier looks")
        self.score = build_score(score, size if kind.uses_query else 0, size, {"size": size})
        self.Q_x = nn.Linear(width, size, bias=False) if kind.uses_query else None
        self.Q_h = nn.Linear(size, size, bias=False) if kind.uses_query else None

    def asking(self, x: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps query"]:
        """Q_x x_j of all steps: the half of the queries that no state enters."""
        return x[..., :0] if self.Q_x is None else self.Q_x(x)

    def append(self, state: Float[Tensor, "batch size"], cache: DeferredCache) -> Float[Tensor, "batch size"]:
        """Let later steps look at a state; its key is computed here, once."""
        return cache.append(state, compute_keys(self.score, state[:, None])[:, 0])

    def forward(
        self,
        asked: Float[Tensor, "batch query"],
        state: Float[Tensor, "batch size"],
        cache: DeferredCache,
        *,
        product: Product = plain_product,
    ) -> Float[Tensor, "batch size"]:
        """The context of the next step, from its half of the query and the state written last."""
        if self.Q_h is not None:
            asked = asked + product(state, self.Q_h.weight, f"{id(self)}.Q_h")
        energies = compute_energies(self.score, asked[:, None], Candidates(cache.keys(state), Layout()))
        weights = softmax(energies.float()).to(energies.dtype)
        return cache.mean(weights, state).squeeze(1)


def intra_equations(score: str, h: str) -> list[str]:
    """How a sequence of states h_1, h_2, .. looks back at itself: for `show`.

    >>> intra_equations("dot", "h")[1]
    'e_i = q . k_i, with q = Q_x e(x_j) + Q_h h_{j-1} and k_i = h_i'
    """
    energy = re.sub(r"_j\b", "_i", equation_of(score))
    asked = f", with q = Q_x e(x_j) + Q_h {h}_{{j-1}}" if scores[score].uses_query else ""
    keys = "" if not re.search(r"\bk_i\b", energy) else f" and k_i = {h}_i" if asked else f", with k_i = {h}_i"
    return [
        f"self-attention: c_j = sum_{{i<j}} a_ji {h}_i,  a_ji = exp(e_i) / sum_{{l<j}} exp(e_l);  c_1 = 0",
        f"{energy}{asked}{keys}",
    ]
