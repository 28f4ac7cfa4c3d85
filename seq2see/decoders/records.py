"""What a decoder prepares once, carries from step to step, and gives at each step. Never kept on a module."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.attention import Prepared
from seq2see.cells import CellState


@dataclass
class Ready:
    """A memory made ready for decoding: keys per attention, first states, what enters every step.

    looks: {input name: keys, values, mask}; start: per layer the first cell state (batch, size);
    every: (batch, gates), the product of the summary that enters every step.
    """

    rows: int
    looks: dict[str, Prepared] = field(default_factory=dict)
    start: list[CellState] = field(default_factory=list)
    every: Float[Tensor, "batch gates"] | None = None

    def select(self, rows: Int[Tensor, " chosen"]) -> Ready:
        return Ready(
            rows=len(rows),
            looks={name: prepared.select(rows) for name, prepared in self.looks.items()},
            start=[tuple(part[rows] for part in state) for state in self.start],
            every=None if self.every is None else self.every[rows],
        )


@dataclass
class State:
    """What a decoder carries. Rows are grouped: row r reads row r // width of the memory, which is never repeated.

    cells: per layer the cell's state (rows, size); context: (rows, size), the last one, where it enters the next step;
    past: {input name: (rows, places)}, what an attention remembers of its earlier looks.
    """

    cells: list[CellState]
    width: int = 1
    position: int = 0
    context: Float[Tensor, "rows context"] | None = None
    past: dict[str, Float[Tensor, "rows places"]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.cells[0][0])

    def select(self, rows: Int[Tensor, " chosen"], width: int) -> State:
        """The chosen rows, `width` of them in a run for each row of the memory."""
        return replace(
            self,
            cells=[tuple(part[rows] for part in state) for state in self.cells],
            width=width,
            context=None if self.context is None else self.context[rows],
            past={name: remembered[rows] for name, remembered in self.past.items()},
        )

    def detach(self) -> State:
        """The same values without their past: where truncated backpropagation cuts."""
        return replace(
            self,
            cells=[tuple(part.detach() for part in state) for state in self.cells],
            context=None if self.context is None else self.context.detach(),
            past={name: remembered.detach() for name, remembered in self.past.items()},
        )


@dataclass
class Step:
    """The state after a step (or after a whole target), what the output layer sees, and where the decoder looked.

    features: (rows, size), or (rows, steps, size) for a whole target; looks and energies: {name: (rows, places)}, or
    (rows, steps, places); contexts: {name: (rows, size)}.
    """

    state: State
    features: Float[Tensor, "rows *steps size"]
    looks: dict[str, Float[Tensor, "rows *steps places"]] = field(default_factory=dict)
    energies: dict[str, Tensor] = field(default_factory=dict)
    contexts: dict[str, Tensor] = field(default_factory=dict)


def last_of(states: list[CellState]) -> Tensor:
    """s_t: the output of the top layer."""
    return states[-1][0]


def stack(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts, dim=1)
