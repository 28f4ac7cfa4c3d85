"""Which way back is under way: what adds gradients up along it must not mix two of them."""

from __future__ import annotations

import torch


class Pass:
    """Tells a new backward pass from the one before.

    A pass may end before all parts have been settled: torch.autograd.grad for the query alone never asks for the
    places. What it has put down until then belongs to no later pass.
    """

    def __init__(self) -> None:
        self._number = -1

    def new(self) -> bool:
        """Whether the pass under way is another than at the last call: torch gives each a number of its own."""
        number: int = torch._C._current_graph_task_id()
        before, self._number = self._number, number
        return number != before
