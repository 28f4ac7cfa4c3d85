"""A cell of your own: seq2see train ... --plugin minimal_gated_unit --set decoder.cell=mgu"""

from __future__ import annotations

import torch

from seq2see.cells import Cell, cells
from seq2see.deferred_gradients import plain_product


@cells.register("mgu")
class MinimalGatedUnit(Cell):
    """f = logistic(W_f x + U_f s); n = tanh(W_n x + f * U_n s); s_t = (1 - f) * s_{t-1} + f * n (Zhou et al. 2016)."""

    gates = 2  # rows of W and U, in multiples of the size: those of f, then those of n

    def __init__(self, inputs, size, *, forget: float = 0.0):  # further arguments are settings: encoder.forget=1
        super().__init__(inputs, size)
        self.b.data[:size] = forget

    def forward(self, projected, state, *, product=plain_product):
        """projected: (rows, gates * size), W x + b; state: (s_{t-1},); product: s U', whose gradient is deferred."""
        (s,) = state
        for_gate, for_candidate = projected.chunk(2, 1)
        U_f, U_n = product(s, self.U, f"{id(self)}.U").chunk(2, 1)
        f = torch.sigmoid(for_gate + U_f)
        n = torch.tanh(for_candidate + f * U_n)
        return (s + f * (n - s),)
