"""A cell that looks back: what it has read so far enters each of its steps."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2see.attention import IntraAttention, Tape
from seq2see.cells import build_cell, flipped, last_real
from seq2see.products import HoistedProduct
from seq2see.recipe.basics import CellSettings


class SelfAttentiveCell(nn.Module):
    """h_j = cell(h_{j-1}, [x_j; c_j]), c_j = sum_{i<j} a_ji h_i; c_1 = 0, there being no state to look back at.

    Real steps come first (reading backwards, too: a row is turned by its own length), so that each sees real ones only;
    padding is read along, as in a plain cell, and what comes of it is taken away.
    """

    def __init__(self, settings: CellSettings, width: int, *, score: str):
        super().__init__()
        self.cell = build_cell(settings, {"x": width, "c": settings.size})
        self.inward = IntraAttention(score, width=width, size=settings.size)

    def read(
        self, x: Float[Tensor, "batch steps width"], mask: Bool[Tensor, "batch steps"], *, reverse: bool = False
    ) -> tuple[Float[Tensor, "batch steps size"], Float[Tensor, "batch size"], Float[Tensor, "batch steps steps"]]:
        """Outputs of every step (zero where masked), the last real one, and how each step looked at which others."""
        outputs, weights = self._loop(flipped(x, mask) if reverse else x)
        outputs, weights = outputs * mask[..., None], weights * mask[..., None]
        last = last_real(outputs, mask)
        if reverse:
            outputs = flipped(outputs, mask)
            weights = flipped(flipped(weights, mask).transpose(1, 2), mask).transpose(1, 2)
        return outputs, last, weights

    def _loop(
        self, x: Float[Tensor, "batch steps width"]
    ) -> tuple[Float[Tensor, "batch steps size"], Float[Tensor, "batch steps steps"]]:
        batch, steps = x.shape[:2]
        if not steps:
            return x.new_zeros(batch, 0, self.cell.size), x.new_zeros(batch, 0, 0)
        projected, asked = self.cell.project("x", x, bias=True).unbind(1), self.inward.asking(x).unbind(1)
        tape, times = Tape(steps), HoistedProduct(steps)
        state, outputs = self.cell.zeros(x, batch), list[Tensor]()
        for number in range(steps):
            entering = projected[number]
            if number:
                context = self.inward(asked[number], state[0], tape, times=times)
                entering = entering + times(context, self.cell.W["c"], f"{id(self)}.W_c")
            output, *rest = self.cell(entering, state, times=times)
            state = self.inward.write(output, tape), *rest
            outputs.append(state[0])
        return torch.stack(outputs, 1), tape.weights
