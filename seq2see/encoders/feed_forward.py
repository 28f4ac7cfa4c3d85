"""The part of a Transformer layer that thinks about each place for itself."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class FeedForward(nn.Module):
    """W_2 relu(W_1 x + b_1) + b_2"""

    def __init__(self, size: int, inner: int):
        super().__init__()
        self.W_1 = nn.Linear(size, inner)
        self.W_2 = nn.Linear(inner, size)

    def forward(self, states: Float[Tensor, "*rows size"]) -> Float[Tensor, "*rows size"]:
        found: Tensor = self.W_2(torch.relu(self.W_1(states)))
        return found
