"""The score that knows where it has looked: a convolution of earlier looks enters the energies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from seq2see.attention.records import Candidates
from seq2see.attention.scores import Score, register
from seq2see.attention.taking import pick


@register("coverage")
class Coverage(Score):
    """e_j = v' tanh(W_q q + W_k k_j + W_f f_j) where f = F * sum_{i<t} a_i; on a grid F is two-dimensional"""

    ordered = True
    remembers = True

    def __init__(self, query: int, key: int, size: int = 128, filters: int = 16, kernel: int = 5, axes: int = 1):
        super().__init__(query, key)
        self.axes, self.kernel, self.ordered = axes, kernel, kernel > 1
        self.W_q = nn.Linear(query, size, bias=False)
        self.W_k = nn.Linear(key, size, bias=False)
        self.W_f = nn.Linear(filters, size, bias=False)
        self.F = nn.Parameter(torch.empty(filters, kernel**axes))
        nn.init.uniform_(self.F, -1 / math.sqrt(kernel**axes), 1 / math.sqrt(kernel**axes))
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return linear(states, self.W_k.weight)

    def forward(
        self, query: Float[Tensor, "batch queries query"], candidates: Candidates
    ) -> Float[Tensor, "batch queries places"]:
        past = candidates.past
        if past is None:
            raise ValueError("the score coverage needs the sum of earlier looks")
        shape = candidates.layout.shape if self.axes == 2 else past.shape[-1:]
        if candidates.numbers is None:
            around = self._neighbourhoods(past, shape)
        else:
            around = self._around(past, candidates.numbers, shape)
        features = self.W_f(linear(around.to(self.F.dtype), self._reaching(shape)))
        inner = torch.tanh(self.W_q(query)[:, :, None] + candidates.keys[:, None] + features)
        return linear(inner, self.v.weight).squeeze(-1)

    def _spans(self, shape: Sequence[int]) -> list[tuple[int, int]]:
        """How far F reaches before and behind a place along each axis, but never beyond the whole input."""
        before, behind = (self.kernel - 1) // 2, self.kernel // 2
        return [(min(before, length - 1), min(behind, length - 1)) for length in (max(one, 1) for one in shape)]

    def _reaching(self, shape: Sequence[int]) -> Float[Tensor, "filters patch"]:
        """The part of F that meets an input of that shape: the rest would lie beyond the edge wherever it stands."""
        middle = (self.kernel - 1) // 2
        filters: Tensor = self.F.unflatten(1, [self.kernel] * self.axes)
        for axis, (before, behind) in enumerate(self._spans(shape), start=1):
            filters = filters.narrow(axis, middle - before, before + behind + 1)
        return filters.flatten(1)

    def _neighbourhoods(
        self, past: Float[Tensor, "batch queries places"], shape: Sequence[int]
    ) -> Float[Tensor, "batch queries places patch"]:
        """What was looked at around each place, as F sees it; nothing lies beyond the edge."""
        spans = self._spans(shape)
        widths = [before + behind + 1 for before, behind in spans]
        if self.axes == 1:
            return pad(past, spans[0]).unfold(-1, widths[0], 1)
        grid = pad(past.unflatten(-1, shape), (*spans[1], *spans[0]))
        return grid.unfold(-2, widths[0], 1).unfold(-2, widths[1], 1).flatten(2, 3).flatten(3)

    def _around(
        self, past: Float[Tensor, "batch one places"], numbers: Int[Tensor, "batch window"], shape: Sequence[int]
    ) -> Float[Tensor, "batch one window patch"]:
        """The same for the candidates of a window: nothing is looked up that does not lie around one of them."""
        offsets = [torch.arange(-before, behind + 1, device=numbers.device) for before, behind in self._spans(shape)]
        columns = (numbers % shape[-1])[..., None] + offsets[-1]
        at, inside = columns, (columns >= 0) & (columns < shape[-1])
        if self.axes == 2:
            rows = (numbers // shape[1])[..., None] + offsets[0]
            inside = ((rows >= 0) & (rows < shape[0]))[..., :, None] & inside[..., None, :]
            at = rows[..., :, None] * shape[1] + columns[..., None, :]
        at, inside = at.flatten(2).clamp(0, past.shape[-1] - 1), inside.flatten(2)
        found = pick(past[:, 0], at.flatten(1)).view(at.shape)
        return (found * inside)[:, None]
