"""A normaliser of your own: --plugin top_softmax --set attention.normaliser=top-softmax --set attention.largest=2"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field

from seq2see.attention import Normaliser, normalisers


@normalisers.register("top-softmax")
class TopSoftmax(Normaliser):
    """a_j = exp(e_j) / sum_i exp(e_i) over the largest energies, 0 elsewhere"""

    def __init__(self, largest: Annotated[int, Field(gt=0)] = 3):  # arguments are settings, with their limits
        super().__init__()
        self.largest = largest

    def forward(self, energies):  # (.., places) -> (.., places), padding far below everything else
        least = energies.topk(min(self.largest, energies.shape[-1]), -1).values[..., -1:]
        return torch.softmax(energies.masked_fill(energies < least, -torch.inf), -1)
