"""Recurrent layers one above the other, each reading in one or both directions: what recurrent encoders are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import dropout

from seq2see.cells import Cell, build_cell
from seq2see.encoders.pairs import pairs
from seq2see.encoders.self_attentive import SelfAttentiveCell
from seq2see.recipe.schema import CellSettings

DIRECTIONS = ("forwards", "backwards")


@dataclass
class Read:
    """states: the top layer's, last: its last state in each direction, joined; with dropout behind every layer.

    mask: (batch, length), which states are real: as given, or of fewer where layers read pairs;
    weights: {name: (batch, length, length)}, where cells that look back looked, by layer (`self-1`, from the bottom)
    and, where there are two, by direction (`self-1-forwards`); of layers of self-attention (batch, heads, length,
    length).
    """

    states: Float[Tensor, "batch length size"]
    last: Float[Tensor, "batch size"]
    mask: Bool[Tensor, "batch length"]
    weights: dict[str, Float[Tensor, "batch *heads length length"]] = field(default_factory=dict)


class RecurrentLayers(nn.ModuleList):
    """h_1 .. h_M from x_1 .. x_M; layer l holds the cell that reads forwards and, where asked for, one backwards.

    self_attention: the score by which each cell looks back at what it has read; none: it has its own state alone.
    halvings: so many layers, from the lowest on, read neighbours joined in pairs: half as many as there are below.

    >>> layers = RecurrentLayers(CellSettings(size=4), 3, bidirectional=True)
    >>> read = layers(torch.zeros(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))
    >>> read.states.shape, read.last.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 8]))
    """

    def __init__(
        self,
        settings: CellSettings,
        width: int,
        *,
        bidirectional: bool,
        self_attention: str = "none",
        halvings: int = 0,
    ):
        super().__init__()
        self.dropout, self.halvings = settings.dropout, halvings
        directions = 2 if bidirectional else 1
        self.size = settings.size * directions
        for number in range(settings.layers):
            width *= 2 if number < halvings else 1
            self.append(
                nn.ModuleList(
                    build_cell(settings, {"x": width})
                    if self_attention == "none"
                    else SelfAttentiveCell(settings, width, score=self_attention)
                    for _ in range(directions)
                )
            )
            width = self.size

    def forward(self, states: Float[Tensor, "batch steps width"], mask: Bool[Tensor, "batch steps"]) -> Read:
        last, weights = states.new_zeros(len(states), self.size), dict[str, Tensor]()
        for number, readers in enumerate(self.readers(), start=1):
            if number <= self.halvings:
                states, mask = pairs(states, mask)
            runs = [_read(reader, states, mask, reverse=bool(i)) for i, reader in enumerate(readers)]
            states = dropout(torch.cat([outputs for outputs, _, _ in runs], dim=-1), self.dropout, self.training)
            last = torch.cat([final for _, final, _ in runs], dim=-1)
            for direction, (_, _, looked) in zip(DIRECTIONS, runs, strict=False):
                if looked is not None:
                    weights[f"self-{number}" + (f"-{direction}" if len(runs) > 1 else "")] = looked
        return Read(states, dropout(last, self.dropout, self.training), mask, weights)

    def readers(self) -> list[list[Cell | SelfAttentiveCell]]:
        """Per layer the cell that reads forwards and, where there is one, the cell that reads backwards."""
        return [list(cast("Iterable[Cell | SelfAttentiveCell]", directions)) for directions in self]


def _read(
    reader: Cell | SelfAttentiveCell, states: Tensor, mask: Tensor, *, reverse: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Outputs, the last one, and where a cell that looks back looked."""
    if isinstance(reader, SelfAttentiveCell):
        return reader.read(states, mask, reverse=reverse)
    return *reader.read({"x": states}, mask, reverse=reverse), None
