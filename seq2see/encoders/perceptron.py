"""Dense layers one above the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import dropout


class Perceptron(nn.ModuleList):
    """W_L relu(.. relu(W_1 x + b_1) ..) + b_L, with dropout on what each layer gives; without layers x itself.

    >>> Perceptron(3, 4, layers=2)(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(self, width: int, size: int, *, layers: int, dropout: float = 0.0):
        super().__init__(nn.Linear(size if number else width, size) for number in range(layers))
        self.dropout = dropout

    def forward(self, vectors: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows size"]:
        for number, layer in enumerate(cast("Iterable[nn.Linear]", self)):
            inner = torch.relu(vectors) if number else vectors
            vectors = dropout(layer(inner), self.dropout, self.training)
        return vectors

    @staticmethod
    def equation(layers: int, x: str) -> str:
        """As it is written down.

        >>> Perceptron.equation(2, "x")
        'W_2 relu(W_1 x + b_1) + b_2'
        """
        for number in range(1, layers + 1):
            x = f"W_{number} {x if number == 1 else f'relu({x})'} + b_{number}"
        return x
