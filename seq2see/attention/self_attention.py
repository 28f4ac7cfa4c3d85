"""Self-attention: multi-head scaled dot products with rotary positions, and intra-attention of recurrent encoders."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from seq2see.attention.normalisers import masked, softmax
from seq2see.attention.records import Candidates
from seq2see.attention.scores import build_score, compute_energies, compute_keys, scores
from seq2see.deferred_gradients import DeferredCache, Product, plain_product
from seq2see.errors import UserError
from seq2see.looks import Layout
from seq2see.memory import repeat_rows


@dataclass
class HeadNumbers:
    """What each head of a self-attention computed, for rows of queries.

    query, context: (rows, heads, queries, part); energies, weights: (rows, heads, queries, places), energies minus
    infinity at places that a query may not see.
    """

    query: Float[Tensor, "rows heads queries part"]
    energies: Float[Tensor, "rows heads queries places"]
    weights: Float[Tensor, "rows heads queries places"]
    context: Float[Tensor, "rows heads queries part"]


def heads_problems(size: int, heads: int, *, rotary: bool = False) -> Iterator[tuple[str, str]]:
    """(setting, why) where heads cannot share vectors of that size; rotary: positions turn pairs of their numbers."""
    if size % heads:
        yield "heads", f"{heads} heads cannot share {size} numbers; allowed: what divides {size}"
    elif rotary and size // heads % 2:
        share = f"each of {heads} heads has {size // heads}"
        yield "positions", f"rotary turns pairs of numbers, and {share}; allowed: an even share, or other positions"


class SelfAttention(nn.Module):
    """c_i = W_o [c_i^1; ..; c_i^H] + b_o, with c_i^n = sum_j softmax_j(q_i . k_j / sqrt(d)) v_j in each head.

    Queries, keys and values are arguments of their own, so that a decoder can cache those of earlier steps. Without
    `need_weights` the weights are not kept.
    rotary: q_i and k_j are rotated by their positions, so that their product depends on the distance. Cached keys are
    not rotated; the queries are the last of the places.
    """

    def __init__(self, size: int, *, heads: int, rotary: bool = False):
        super().__init__()
        for key, message in heads_problems(size, heads, rotary=rotary):
            raise UserError(f"{key}: {message}")
        self.size, self.heads, self.rotary = size, heads, rotary
        self.W_q = nn.Linear(size, size)
        self.W_k = nn.Linear(size, size)
        self.W_v = nn.Linear(size, size)
        self.W_o = nn.Linear(size, size)

    def project(
        self, states: Float[Tensor, "rows places size"]
    ) -> tuple[
        Float[Tensor, "rows heads places part"],
        Float[Tensor, "rows heads places part"],
        Float[Tensor, "rows heads places part"],
    ]:
        """Queries, keys and values: by one product, but for predictions, whose steps would spend more time on joining
        the weights."""
        layers = (self.W_q, self.W_k, self.W_v)
        if torch.is_grad_enabled():
            weight, bias = torch.cat([one.weight for one in layers]), torch.cat([one.bias for one in layers])
            queries, keys, values = linear(states, weight, bias).chunk(3, dim=-1)
        else:
            queries, keys, values = (one(states) for one in layers)
        return self._split(queries), self._split(keys), self._split(values)

    def forward(
        self,
        queries: Float[Tensor, "rows heads queries part"],
        keys: Float[Tensor, "rows heads places part"],
        values: Float[Tensor, "rows heads places part"],
        *,
        mask: Bool[Tensor, "#rows #queries places"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "rows queries size"], HeadNumbers | None]:
        """The contexts of the queries, and if `need_weights` the numbers of each head.

        mask: the places that each query may see, None: all of them.

        A query that may see no place gets b_o alone, and no weight learns from it.
        """
        if self.rotary:
            queries, keys = rotate(queries, keys.shape[2] - queries.shape[2]), rotate(keys, 0)
        numbers = self._numbers(queries, keys, values, mask) if need_weights else None
        contexts = _contexts(queries, keys, values, mask) if numbers is None else numbers.context
        return self.W_o(contexts.transpose(1, 2).flatten(2)), numbers

    def _numbers(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> HeadNumbers:
        energies = queries @ keys.transpose(-1, -2) / keys.shape[-1] ** 0.5
        if mask is None:
            weights = softmax(energies)
        else:
            each = repeat_rows(mask.expand(energies.shape[0], -1, -1), self.heads)
            weights = masked(softmax, energies.flatten(0, 1), each).view_as(energies)
            energies = energies.masked_fill(~mask[:, None], -torch.inf)
        return HeadNumbers(queries, energies, weights, weights.to(values.dtype) @ values)

    def _split(self, vectors: Float[Tensor, "rows places size"]) -> Float[Tensor, "rows heads places part"]:
        parts: Tensor = vectors.unflatten(-1, (self.heads, -1))
        return parts.transpose(1, 2)


FEW = 512 * 512
"""Pairs of queries and places up to which weights in bfloat16 are kept for the way back instead of being computed again
there: torch's fused kernel, which does the latter, takes 1.4 to 10 times as long. In single precision it is as fast for
short texts and faster for long ones (`benchmarks/short_attention.py`)."""

MOST_WEIGHTS = 1 << 26
"""Weights of all rows and heads of a batch up to which they are kept."""


def _contexts(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Weighted means of the values. Queries that may see nothing are computed as if they saw all and then zeroed, to
    avoid NaN."""
    if mask is None:
        return _means(queries, keys, values, None)
    any_place = mask.any(-1, keepdim=True)
    return _means(queries, keys, values, (mask | ~any_place)[:, None]) * any_place[:, None]


def _means(queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
    pairs = queries.shape[2] * keys.shape[2]
    small = pairs <= FEW and queries.shape[0] * queries.shape[1] * pairs <= MOST_WEIGHTS
    kept = small and queries.dtype == torch.bfloat16 and queries.device.type == "cpu"
    if not (kept and torch.is_grad_enabled()):
        return scaled_dot_product_attention(queries, keys, values, attn_mask=visible)
    return kept_weights(queries, keys, values, visible)


def kept_weights(
    queries: Float[Tensor, "rows heads queries part"],
    keys: Float[Tensor, "rows heads places part"],
    values: Float[Tensor, "rows heads places part"],
    visible: Bool[Tensor, "#rows #heads #queries places"] | None,
) -> Float[Tensor, "rows heads queries part"]:
    """Weighted means of the values by two products and a softmax, whose weights autograd keeps."""
    energies = (queries / queries.shape[-1] ** 0.5) @ keys.transpose(-1, -2)
    if visible is not None:
        energies = energies.masked_fill(~visible, -torch.inf)
    return softmax(energies).to(values.dtype) @ values


def rotate(vectors: Float[Tensor, "rows heads places part"], first: int) -> Float[Tensor, "rows heads places part"]:
    """Rotary positions (Su et al. 2021): the pair (i, i + part / 2) at place j is rotated by the angle (first + j) w_i.

    The w_i fall from 1 to 1 / 10,000. The product of a query at t and a key at j then depends on t - j alone, so both
    may be counted from anywhere: an endless text needs no large numbers.

    >>> q, k = torch.randn(2, 1, 1, 1, 4)
    >>> near, far = ((rotate(q, t + 3) * rotate(k, t)).sum() for t in (0, 500))
    >>> bool((near - far).abs() < 1e-4)
    True
    """
    places, half = vectors.shape[-2], vectors.shape[-1] // 2
    rates = torch.exp(torch.arange(half, device=vectors.device) * (-math.log(10_000.0) / half))
    angles = (first + torch.arange(places, device=vectors.device))[:, None] * rates
    sine, cosine = angles.sin(), angles.cos()
    left, right = vectors.float().chunk(2, dim=-1)
    rotated = torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)
    return rotated.to(vectors.dtype)


class IntraAttention(nn.Module):
    """c_j = sum_{i<j} a_ji h_i, a_j = softmax over i < j of score(q_j, h_i), q_j = Q_x x_j + Q_h h_{j-1}.

    The query has the current symbol beside the state before it (Cheng, Dong and Lapata 2016) and the size of the
    states, so that every score fits. A score that does not use the query (static, uniform) has none.
    """

    def __init__(self, score: str, *, width: int, size: int):
        super().__init__()
        kind = scores[score]
        if kind.ordered or kind.remembers:
            raise UserError(f"encoder.self_attention: {score} depends on positions, or on earlier looks")
        self.score = build_score(score, size if kind.uses_query else 0, size, {"size": size})
        self.Q_x = nn.Linear(width, size, bias=False) if kind.uses_query else None
        self.Q_h = nn.Linear(size, size, bias=False) if kind.uses_query else None

    def project_inputs(self, x: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps query"]:
        """Q_x x_j of all steps: the part of the queries that does not depend on the states."""
        return x[..., :0] if self.Q_x is None else self.Q_x(x)

    def append(self, state: Float[Tensor, "batch size"], cache: DeferredCache) -> Float[Tensor, "batch size"]:
        """Add a state and its key to the cache; continue with the tensor that is returned."""
        return cache.append(state, compute_keys(self.score, state[:, None])[:, 0])

    def forward(
        self,
        projected: Float[Tensor, "batch query"],
        state: Float[Tensor, "batch size"],
        cache: DeferredCache,
        *,
        product: Product = plain_product,
    ) -> Float[Tensor, "batch size"]:
        """The context of the next step; projected: Q_x x_j; state: the one appended last."""
        query = projected
        if self.Q_h is not None:
            query = query + product(state, self.Q_h.weight, f"{id(self)}.Q_h")
        energies = compute_energies(self.score, query[:, None], Candidates(cache.keys(state), Layout()))
        weights = softmax(energies.float()).to(energies.dtype)
        return cache.mean(weights, state).squeeze(1)

    def equations(self, h: str = "h") -> list[str]:
        """How states h_1, h_2, .. attend to earlier ones, for `show`.

        >>> IntraAttention("dot", width=2, size=2).equations()[1]
        'e_i = q . k_i, with q = Q_x e(x_j) + Q_h h_{j-1} and k_i = h_i'
        """
        energy = re.sub(r"_j\b", "_i", self.score.equation())
        query = f", with q = Q_x e(x_j) + Q_h {h}_{{j-1}}" if self.score.uses_query else ""
        keys = "" if not re.search(r"\bk_i\b", energy) else f" and k_i = {h}_i" if query else f", with k_i = {h}_i"
        return [
            f"self-attention: c_j = sum_{{i<j}} a_ji {h}_i,  a_ji = exp(e_i) / sum_{{l<j}} exp(e_l);  c_1 = 0",
            f"{energy}{query}{keys}",
        ]
