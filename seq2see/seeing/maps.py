"""A map of vectors: points, names for as many as fit, lines to the nearest others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError, counted
from seq2see.seeing.fonts import Lettering
from seq2see.seeing.labels import short_names
from seq2see.seeing.plots import MARKERS, dress
from seq2see.seeing.style import Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---------------- Where names can stand beside the points of a map, so that none covers another

GAP = 0.06
"""Inches between a point and its name."""


@dataclass(frozen=True)
class Spot:
    """The name of a point, its lower left corner at (x, y) inches."""

    point: int
    x: float
    y: float
    width: float
    height: float

    def covers(self, x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], margin: float) -> bool:
        """Whether any of these points lies under it."""
        across = (x > self.x - margin) & (x < self.x + self.width + margin)
        return bool((across & (y > self.y - margin) & (y < self.y + self.height + margin)).any())

    def meets(self, other: Spot) -> bool:
        apart = self.x + self.width <= other.x or other.x + other.width <= self.x
        return not (apart or self.y + self.height <= other.y or other.y + other.height <= self.y)


def spread_order(points: Float[np.ndarray, "points 2"]) -> list[int]:
    """Points by how much each adds to a picture of all: the one nearest the middle, then always the one that is
    farthest from those before it. So few names tell of the middle, of the outliers and of what lies between.

    >>> spread_order(np.array([[0.1, 0.0], [0.0, 0.0], [5.0, 0.0], [-4.0, 0.0]]))
    [0, 2, 3, 1]
    """
    middle = np.linalg.norm(points - points.mean(0), axis=1)
    order = [int(middle.argmin())]
    far = np.linalg.norm(points - points[order[0]], axis=1)
    far[order[0]] = -1
    for _ in range(len(points) - 1):
        order.append(int(far.argmax()))
        far = np.minimum(far, np.linalg.norm(points - points[order[-1]], axis=1))
        far[order[-1]] = -1
    return order


def placed(
    points: Float[np.ndarray, "points 2"],
    sizes: Sequence[tuple[float, float]],
    *,
    room: tuple[float, float],
    most: int,
    mark: float = 0.035,
) -> list[Spot]:
    """Names for as many points as fit into a room of (width, height) inches without covering a name or a point.

    points: in inches; sizes: (width, height) of each point's name; most: so many names at most; mark: half the width
    of a point itself.
    """
    found: list[Spot] = []
    for point in spread_order(points):
        if len(found) == most:
            break
        x, y = points[point]
        width, height = sizes[point]
        near = GAP + mark
        corners = [
            (x + near, y - height / 2),
            (x - near - width, y - height / 2),
            (x - width / 2, y + near),
            (x - width / 2, y - near - height),
            (x + near * 0.7, y + near * 0.7),
            (x + near * 0.7, y - near * 0.7 - height),
            (x - near * 0.7 - width, y + near * 0.7),
            (x - near * 0.7 - width, y - near * 0.7 - height),
        ]
        others = np.delete(points, point, axis=0)
        for left, bottom in corners:
            spot = Spot(point, float(left), float(bottom), width, height)
            inside = left >= 0 and bottom >= 0 and left + width <= room[0] and bottom + height <= room[1]
            if inside and not spot.covers(others[:, 0], others[:, 1], mark) and not any(map(spot.meets, found)):
                found.append(spot)
                break
    return found


ROOM = (8.4, 6.2)
"""Inches of the map itself."""
_LEFT, _BOTTOM, _TOP, _RIGHT = 0.75, 0.62, 0.6, 0.25
NAMED = 40
"""Names at most."""
LINED = 60
"""Up to so many points all have lines to their neighbours; of more, those with names."""
LETTERS = 34
_SIZE = 8.0


def map_plot(
    points: Float[np.ndarray, "points 2"],
    names: Sequence[str],
    *,
    shares: tuple[float, float],
    neighbours: Sequence[Sequence[int]] = (),
    groups: Sequence[str] | None = None,
    title: str | None = None,
    theme: str = "light",
    spell: bool = True,
) -> Figure:
    """Points with names; shares: of the variance that each axis holds; neighbours: numbers of each point's nearest;
    groups: what each point belongs to, told by colour and mark. Both axes have one scale: distances are what they are.
    """
    from matplotlib.figure import Figure

    colours, letters = theme_named(theme), Lettering(spell=spell)
    kinds = list(dict.fromkeys(groups)) if groups is not None else []
    if len(kinds) > len(colours.series):
        raise UserError(f"a map tells at most {len(colours.series)} groups apart, got {len(kinds)}")
    width, height = _LEFT + ROOM[0] + _RIGHT, _BOTTOM + ROOM[1] + _TOP
    figure = Figure(figsize=(width, height), facecolor=colours.paper)
    axes = figure.add_axes((_LEFT / width, _BOTTOM / height, ROOM[0] / width, ROOM[1] / height))
    low, unit = _limits(points)
    axes.set_xlim(low[0], low[0] + ROOM[0] * unit)
    axes.set_ylim(low[1], low[1] + ROOM[1] * unit)
    labels = [letters.text(name) for name in short_names(names, LETTERS)]
    inches = (points - low) / unit
    spots = placed(inches, [label.measure(_SIZE) for label in labels], room=ROOM, most=NAMED)
    _lines(axes, points, neighbours, spots, colours)
    _points(axes, points, groups, kinds, colours)
    for spot in spots:
        where = low + unit * np.array([spot.x, spot.y])
        style: dict[str, Any] = {"color": colours.ink, "ha": "left", "va": "bottom", **labels[spot.point].style(_SIZE)}
        clear = {"facecolor": colours.paper, "edgecolor": "none", "alpha": 0.8, "pad": 0.4}
        axes.text(where[0], where[1], labels[spot.point].text, bbox=clear, **style)
    sides = [f"{share:.0%}".replace("%", " %") for share in shares]
    number = f"  ·  {counted(len(points), 'input')}" if len(spots) < len(points) else ""
    dress(
        axes,
        colours,
        xlabel=f"first principal component ({sides[0]} of the variance)",
        ylabel=f"second principal component ({sides[1]})",
        title=f"{title or 'Inputs by their vectors'}{number}",
    )
    axes.grid(axis="both", color=colours.line, linewidth=0.6)
    if kinds:
        axes.legend(facecolor=colours.paper, edgecolor="none", framealpha=0.85, fontsize=9, labelcolor=colours.ink)
    letters.report_missing()
    return figure


def _limits(points: Float[np.ndarray, "points 2"]) -> tuple[Float[np.ndarray, " 2"], float]:
    """(the lower left corner, what an inch stands for): all points inside, with room for names around them."""
    lowest, highest = points.min(0), points.max(0)
    room = np.array(ROOM)
    unit = float(((highest - lowest) / (room - (2.4, 0.7))).max()) or 1.0
    middle = (lowest + highest) / 2
    return middle - room * unit / 2, unit


def _lines(
    axes: Axes,
    points: Float[np.ndarray, "points 2"],
    neighbours: Sequence[Sequence[int]],
    spots: list[Spot],
    colours: Theme,
) -> None:
    from matplotlib.collections import LineCollection

    chosen = range(len(points)) if len(points) <= LINED else [spot.point for spot in spots]
    pairs = {tuple(sorted((one, other))) for one in chosen if neighbours for other in neighbours[one]}
    lines = LineCollection([points[list(pair)] for pair in sorted(pairs)], colors=colours.muted, linewidths=0.9)
    lines.set_alpha(0.55)
    lines.set_gid("neighbours")
    axes.add_collection(lines)


def _points(
    axes: Axes,
    points: Float[np.ndarray, "points 2"],
    groups: Sequence[str] | None,
    kinds: list[str],
    colours: Theme,
) -> None:
    look: dict[str, Any] = {"s": 26 if len(points) <= 200 else 11, "linewidths": 0.6, "edgecolors": colours.paper}
    if groups is None:
        axes.scatter(points[:, 0], points[:, 1], color=colours.series[0], zorder=3, **look)
        return
    member = np.array([kinds.index(group) for group in groups])
    for number, kind in enumerate(kinds):
        held = points[member == number]
        mark: dict[str, Any] = {"color": colours.series[number], "marker": MARKERS[number % len(MARKERS)], "zorder": 3}
        axes.scatter(held[:, 0], held[:, 1], label=kind, **mark, **look)
