"""Scopes: the candidate places of a query, all of them or a window, chosen before any place is scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from seq2see.attention.records import Prepared
from seq2see.errors import UserError
from seq2see.memory import View
from seq2see.registry import Registry
from seq2see.settings.base import FittedSize, NoSettings, Settings
from seq2see.settings.plugins import construct, part_registry

Positions = int | Int[Tensor, " queries"]
"""The number t (from 0) of the step that a query belongs to: one for all queries, or one for each."""


@dataclass
class Window:
    """The candidates of each query.

    numbers: (batch, queries, window), the places, clamped to the input; real: (batch, queries, window), which of them
    are real; bias: (batch, queries, window), added to their energies: the logarithm of a Gaussian of the distance.
    """

    numbers: Int[Tensor, "batch queries window"]
    real: Bool[Tensor, "batch queries window"]
    bias: Float[Tensor, "batch queries window"] | None


scopes: Registry[type[Scope]] = part_registry("scope", lambda: Scope, methods=["window"], known=("view", "query"))


class Scope(nn.Module):
    """Chooses the candidate places of each query; a kind writes `window`.

    The constructor of a kind gets those of `view` (what is looked at) and `query` (the size of a query) that it has as
    arguments; its other arguments are settings. local: it leaves places out; learned: it has parameters.
    """

    local: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    @classmethod
    def build(cls, settings: Settings, view: View, *, query: int) -> Scope:
        """The scope of these settings, for the places of `view` and queries of that size."""
        scope: Scope = construct(cls, settings, view=view, query=query)
        return scope

    def window(
        self, query: Float[Tensor, "batch queries query"], prepared: Prepared, positions: Positions
    ) -> Window | None:
        """The candidates; None: every place is one."""
        raise NotImplementedError

    def equations(self, *, place: str = "places") -> list[str]:
        """Which places are candidates, for `show`; nothing where all are."""
        return []


@scopes.register("global")
class Global(Scope):
    """Every place is a candidate."""

    Settings = NoSettings
    local = False

    def window(
        self, query: Float[Tensor, "batch queries query"], prepared: Prepared, positions: Positions
    ) -> Window | None:
        return None


class WindowSettings(Settings):
    """A window around p_t."""

    window: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        5, description="local scopes: how far the window extends to each side of p_t"
    )


WINDOWED = ("tokens", "frames", "grid")
"""Layouts whose places lie in a line or a grid, so that they have neighbours, and can be read one after the other."""


class Local(Scope):
    """Places within `reach` of p_t, with log N(distance; sigma = reach / 2) added to the energies (Luong et al. 2015).

    In a line the distance is |j - p_t|. On a grid p_t is a row and a column, and the window a square; a scope that runs
    over columns alone has every row of the columns near p_t. A window never costs more than the whole input.
    """

    name: ClassVar[str]

    def __init__(self, view: View, *, reach: int, gaussian: bool = True):
        super().__init__()
        if view.layout not in WINDOWED:
            raise UserError(
                f"attention.scope: {self.name} is a window in a line or a grid, and the places are {view.layout}; "
                "allowed: global"
            )
        self.reach, self.gaussian, self.grid = reach, gaussian, view.layout == "grid"

    def centres(
        self, query: Float[Tensor, "batch queries query"], extent: Int[Tensor, "batch axes"], positions: Positions
    ) -> Float[Tensor, "batch queries windowed"]:
        """p_t along each windowed axis (a line, columns, or rows and columns); extent: how far real places reach."""
        raise NotImplementedError

    def centre_equation(self) -> str:
        """How p_t is found, for `show`."""
        raise NotImplementedError

    def equations(self, *, place: str = "places") -> list[str]:
        lines = [f"{self.centre_equation()};  asked are {self._near(place)}"]
        if self.gaussian:
            lines.append(f"e_tj = e_tj - {self._distance()} / (2 sigma ** 2), sigma = {self.reach / 2:g}")
        return lines

    def _near(self, place: str) -> str:
        return f"the {place} j with |j - p_t| <= {self.reach}"

    def _distance(self) -> str:
        return "(j - p_t) ** 2"

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
        numbers, far, inside = self._flattened(lines, distances, shape)
        real = inside & mask.gather(1, numbers.flatten(1)).view_as(numbers)
        bias = -far / (2 * (self.reach / 2) ** 2) if self.gaussian else None
        return Window(numbers, real, bias)

    def _flattened(
        self, lines: list[Tensor], distances: list[Tensor], shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The numbers of candidates in the flattened input, squared distances, and which lie inside it."""
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


class MonotonicSettings(WindowSettings):
    """A window around p_t = t."""

    gaussian: bool = Field(True, description="add the logarithm of a Gaussian of the distance to p_t")


@scopes.register("local-monotonic")
class LocalMonotonic(Local):
    """p_t = t, clamped to the last place; on a grid p_t is a column."""

    Settings = MonotonicSettings
    name = "local-monotonic"

    @classmethod
    def build(cls, settings: Any, view: View, *, query: int) -> LocalMonotonic:
        return cls(view, reach=settings.window, gaussian=settings.gaussian)

    def centres(
        self, query: Float[Tensor, "batch queries query"], extent: Int[Tensor, "batch axes"], positions: Positions
    ) -> Float[Tensor, "batch queries windowed"]:
        wanted = torch.as_tensor(positions, device=extent.device).expand(query.shape[:2])
        return torch.minimum(wanted, (extent[:, -1:] - 1).clamp(min=0))[..., None].float()

    def centre_equation(self) -> str:
        return "p_t = t, a column" if self.grid else "p_t = t"

    def _near(self, place: str) -> str:
        return f"all rows of the columns j with |j - p_t| <= {self.reach}" if self.grid else super()._near(place)


class PredictedSettings(WindowSettings):
    """A window around a predicted p_t."""

    size: FittedSize = Field(128, description="hidden size of the score, and of the network that predicts p_t")


@scopes.register("local-predicted")
class LocalPredicted(Local):
    """p_t = M sigmoid(v' tanh(W q)); on a grid one for rows and one for columns."""

    Settings = PredictedSettings
    name = "local-predicted"
    learned = True

    def __init__(self, view: View, *, query: int, size: int, reach: int):
        super().__init__(view, reach=reach)
        self.W = nn.Linear(query, size, bias=False)
        self.v = nn.Linear(size, 2 if self.grid else 1, bias=False)

    @classmethod
    def build(cls, settings: Any, view: View, *, query: int) -> LocalPredicted:
        return cls(view, query=query, size=settings.size, reach=settings.window)

    def centres(
        self, query: Float[Tensor, "batch queries query"], extent: Int[Tensor, "batch axes"], positions: Positions
    ) -> Float[Tensor, "batch queries windowed"]:
        shares = torch.sigmoid(self.v(torch.tanh(self.W(query))).float())
        return extent[:, None] * shares

    def centre_equation(self) -> str:
        if self.grid:
            return "(r_t, p_t) = (rows, columns) * sigmoid(V tanh(W q))"
        return "p_t = M sigmoid(v' tanh(W q))"

    def _near(self, place: str) -> str:
        if not self.grid:
            return super()._near(place)
        return f"rows i and columns j with |i - r_t| <= {self.reach} and |j - p_t| <= {self.reach}"

    def _distance(self) -> str:
        return "((i - r_t) ** 2 + (j - p_t) ** 2)" if self.grid else super()._distance()


def fold(
    prepared: Prepared, window: Window
) -> tuple[Float[Tensor, "folded window size"], Float[Tensor, "folded window value"]]:
    """The keys and values of each query's candidates; queries are folded into the batch."""
    keys = prepared.key_gather.take(window.numbers)
    values = prepared.value_gather.take(window.numbers)
    return keys.flatten(0, 1), values.flatten(0, 1)
