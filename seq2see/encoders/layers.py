"""Recurrent layers one above the other, each reading in one or both directions: what recurrent encoders are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import dropout

from seq2see.cells import Cell, build_cell
from seq2see.recipe.schema import CellSettings


class RecurrentLayers(nn.ModuleList):
    """h_1 .. h_M from x_1 .. x_M; layer l holds the cell that reads forwards and, where asked for, one backwards.

    >>> layers = RecurrentLayers(CellSettings(size=4), 3, bidirectional=True)
    >>> states, last = layers(torch.zeros(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))
    >>> states.shape, last.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 8]))
    """

    def __init__(self, settings: CellSettings, width: int, *, bidirectional: bool):
        super().__init__()
        self.dropout = settings.dropout
        directions = 2 if bidirectional else 1
        self.size = settings.size * directions
        for _ in range(settings.layers):
            self.append(nn.ModuleList(build_cell(settings, {"x": width}) for _ in range(directions)))
            width = self.size

    def forward(
        self, states: Float[Tensor, "batch length width"], mask: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "batch length size"], Float[Tensor, "batch size"]]:
        """The top layer's states, and its last state in each direction, joined; with dropout behind every layer."""
        last = states.new_zeros(len(states), self.size)
        for cells in self.cells():
            runs = [cell.read({"x": states}, mask, reverse=bool(i)) for i, cell in enumerate(cells)]
            states = dropout(torch.cat([outputs for outputs, _ in runs], dim=-1), self.dropout, self.training)
            last = torch.cat([final for _, final in runs], dim=-1)
        return states, dropout(last, self.dropout, self.training)

    def cells(self) -> list[list[Cell]]:
        """Per layer the cell that reads forwards and, where there is one, the cell that reads backwards."""
        return [list(cast("Iterable[Cell]", directions)) for directions in self]
