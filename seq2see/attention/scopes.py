"""Which places are candidates: all of them, or a window around a position, picked before anything is scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2see.attention.records import Prepared
from seq2see.errors import UserError
from seq2see.memory import View

Positions = int | Int[Tensor, " queries"]
"""The number t of the step a query belongs to (from 0): one for all queries, or one for each."""


@dataclass
class Window:
    """For each query the numbers of its candidates, which of them are real, and what is added to their energies.

    numbers: (batch, queries, window), kept inside the input; real: (batch, queries, window);
    bias: (batch, queries, window), the logarithm of a Gaussian of the distance, or None.
    """

    numbers: Int[Tensor, "batch queries window"]
    real: Bool[Tensor, "batch queries window"]
    bias: Float[Tensor, "batch queries window"] | None


class Scope(nn.Module):
    """Picks candidates. `window` gives None where every place is one."""

    def window(
        self, query: Float[Tensor, "batch queries query"], prepared: Prepared, positions: Positions
    ) -> Window | None:
        raise NotImplementedError


class Global(Scope):
    """Every place."""

    def window(
        self, query: Float[Tensor, "batch queries query"], prepared: Prepared, positions: Positions
    ) -> Window | None:
        return None


class Local(Scope):
    """Places within `reach` of p_t, with log N(distance; sigma = reach / 2) added to their energies.

    In a line the distance is |j - p_t|. On a grid p_t is a place (row, column), and the window a square; a scope that
    runs over columns alone sees every row of those near p_t. A window that reaches beyond the input costs no more than
    the input does.
    """

    name: ClassVar[str]

    def __init__(self, view: View, *, reach: int, gaussian: bool = True):
        super().__init__()
        if view.layout not in ("tokens", "frames", "grid"):
            raise UserError(
                f"attention.scope: {self.name} is a window in a line or a grid, and the places are {view.layout}; "
                "allowed: global"
            )
        self.reach, self.gaussian, self.grid = reach, gaussian, view.layout == "grid"

    def centres(
        self, query: Float[Tensor, "batch queries query"], extent: Int[Tensor, "batch axes"], positions: Positions
    ) -> Float[Tensor, "batch queries windowed"]:
        """p_t along each axis that is windowed (a line, columns, or rows and columns); `extent` is what is real."""
        raise NotImplementedError

    def window(
        self, query: Float[Tensor, "batch queries query"], prepared: Prepared, positions: Positions
    ) -> Window | None:
        mask, extent = prepared.mask, prepared.extent
        centres = self.centres(query, extent, positions)
        axes = centres.shape[-1]
        shape = prepared.layout.shape if self.grid else (mask.shape[1],)
        lines, distances = [], []
        for axis in range(axes, 0, -1):
            reach = min(self.reach, max(shape[-axis] - 1, 0))
            near = torch.arange(-reach, reach + 1, device=mask.device)
            length = extent[:, -axis, None].clamp(min=1)
            middle = torch.minimum(centres[..., -axis].detach().round().long().clamp(min=0), length - 1)
            lines.append(middle[..., None] + near)
            distances.append((lines[-1] - centres[..., -axis, None]).square())
        numbers, far, inside = self._laid_out(lines, distances, shape)
        real = inside & mask.gather(1, numbers.flatten(1)).view_as(numbers)
        bias = -far / (2 * (self.reach / 2) ** 2) if self.gaussian else None
        return Window(numbers, real, bias)

    def _laid_out(
        self, lines: list[Tensor], distances: list[Tensor], shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Numbers in the flattened input, squared distances, and whether a candidate lies inside it."""
        columns, across = lines[-1], distances[-1]
        inside = (columns >= 0) & (columns < shape[-1])
        if len(shape) == 1:
            return columns.clamp(0, shape[-1] - 1), across, inside
        if len(lines) == 1:
            rows = torch.arange(shape[0], device=columns.device).expand(*columns.shape[:2], -1)
            down = across.new_zeros(rows.shape)
        else:
            rows, down = lines[0], distances[0]
        both = ((rows >= 0) & (rows < shape[0]))[..., :, None] & inside[..., None, :]
        numbers = rows.clamp(0, shape[0] - 1)[..., :, None] * shape[1] + columns.clamp(0, shape[1] - 1)[..., None, :]
        far = down[..., :, None] + across[..., None, :]
        return numbers.flatten(2), far.flatten(2), both.flatten(2)


class LocalMonotonic(Local):
    """p_t = t, kept inside the input; on a grid p_t runs over columns."""

    name = "local-monotonic"

    def centres(
        self, query: Float[Tensor, "batch queries query"], extent: Int[Tensor, "batch axes"], positions: Positions
    ) -> Float[Tensor, "batch queries windowed"]:
        wanted = torch.as_tensor(positions, device=extent.device).expand(query.shape[:2])
        return torch.minimum(wanted, (extent[:, -1:] - 1).clamp(min=0))[..., None].float()


class LocalPredicted(Local):
    """p_t = M sigmoid(v' tanh(W q)); on a grid one such p_t for the rows and one for the columns."""

    name = "local-predicted"

    def __init__(self, view: View, *, query: int, size: int, reach: int):
        super().__init__(view, reach=reach)
        self.W = nn.Linear(query, size, bias=False)
        self.v = nn.Linear(size, 2 if self.grid else 1, bias=False)

    def centres(
        self, query: Float[Tensor, "batch queries query"], extent: Int[Tensor, "batch axes"], positions: Positions
    ) -> Float[Tensor, "batch queries windowed"]:
        shares = torch.sigmoid(self.v(torch.tanh(self.W(query))).float())
        return extent[:, None] * shares


def build_scope(name: str, view: View, *, query: int, reach: int, size: int, gaussian: bool = True) -> Scope:
    """The scope of that name."""
    if name == "global":
        return Global()
    if name == "local-monotonic":
        return LocalMonotonic(view, reach=reach, gaussian=gaussian)
    if name == "local-predicted":
        return LocalPredicted(view, query=query, size=size, reach=reach)
    raise UserError(f"unknown scope '{name}'; allowed: global, local-monotonic, local-predicted")


def fold(prepared: Prepared, window: Window) -> tuple[Tensor, Tensor]:
    """Keys and values of the candidates, each query with its own: (batch * queries, window, size)."""
    keys = prepared.key_gather.take(window.numbers)
    values = prepared.value_gather.take(window.numbers)
    return keys.flatten(0, 1), values.flatten(0, 1)
