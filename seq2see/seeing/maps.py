"""Scatter plots of vectors: points, names for as many as fit, lines to nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError, counted
from seq2see.seeing.labels import Labeller, short_names
from seq2see.seeing.paper import wrap_texts
from seq2see.seeing.plots import MARKERS, style_axes
from seq2see.seeing.style import Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


GAP = 0.06
"""Inches between a point and its name."""


@dataclass(frozen=True)
class NameBox:
    """The name of a point; its lower left corner is at (x, y) inches."""

    point: int
    x: float
    y: float
    width: float
    height: float

    def covers(self, x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], margin: float) -> bool:
        """Whether any of these points lies under it."""
        across = (x > self.x - margin) & (x < self.x + self.width + margin)
        return bool((across & (y > self.y - margin) & (y < self.y + self.height + margin)).any())

    def overlaps(self, other: NameBox) -> bool:
        apart = self.x + self.width <= other.x or other.x + other.width <= self.x
        return not (apart or self.y + self.height <= other.y or other.y + other.height <= self.y)


def farthest_first(points: Float[np.ndarray, "points 2"]) -> list[int]:
    """Points in farthest-first order: the one nearest the centre, then always the one farthest from those before it.

    The first names then cover the centre, the outliers and what lies between.

    >>> farthest_first(np.array([[0.1, 0.0], [0.0, 0.0], [5.0, 0.0], [-4.0, 0.0]]))
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


def place_names(
    points: Float[np.ndarray, "points 2"],
    sizes: Sequence[tuple[float, float]],
    *,
    size: tuple[float, float],
    limit: int,
    mark: float = 0.035,
) -> list[NameBox]:
    """Names for as many points as fit without covering a name or a point.

    points: in inches; sizes: (width, height) of each name; size: (width, height) of the map; limit: maximum number of
    names;
    mark: half the width of a point.
    """
    boxes: list[NameBox] = []
    for point in farthest_first(points):
        if len(boxes) == limit:
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
            box = NameBox(point, float(left), float(bottom), width, height)
            inside = left >= 0 and bottom >= 0 and left + width <= size[0] and bottom + height <= size[1]
            if inside and not box.covers(others[:, 0], others[:, 1], mark) and not any(map(box.overlaps, boxes)):
                boxes.append(box)
                break
    return boxes


SIZE = (8.4, 6.2)
"""Width and height of the map itself in inches, where no width is given."""
_LEFT, _BOTTOM, _TOP, _RIGHT = 0.75, 0.62, 0.6, 0.25
MAX_NAMES = 40
MAX_LINED = 60
"""Up to this number of points, all have lines to their neighbours; beyond it only those with names."""
MAX_LENGTH = 34
_FONT_SIZE = 8.0


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
    width: float | None = None,
) -> Figure:
    """Points with names, on one scale for both axes, so that distances can be compared.

    shares: of the variance on each axis; neighbours: indices of each point's nearest neighbours;
    groups: the group of each point, shown by colour and marker; width: of the whole figure in inches.
    """
    colours, labeller = theme_named(theme), Labeller(spell=spell)
    kinds = list(dict.fromkeys(groups)) if groups is not None else []
    if len(kinds) > len(colours.series):
        raise UserError(f"a map can show at most {len(colours.series)} groups, got {len(kinds)}")
    figure, size = _sheet(width, colours)
    (axes,) = figure.axes
    low, unit = _limits(points, size)
    axes.set_xlim(low[0], low[0] + size[0] * unit)
    axes.set_ylim(low[1], low[1] + size[1] * unit)
    labels = [labeller.text(name) for name in short_names(names, MAX_LENGTH)]
    inches = (points - low) / unit
    boxes = place_names(inches, [label.measure(_FONT_SIZE) for label in labels], size=size, limit=MAX_NAMES)
    _lines(axes, points, neighbours, boxes, colours)
    _points(axes, points, groups, kinds, colours)
    for box in boxes:
        where = low + unit * np.array([box.x, box.y])
        style: dict[str, Any] = {
            "color": colours.ink,
            "ha": "left",
            "va": "bottom",
            **labels[box.point].style(_FONT_SIZE),
        }
        clear = {"facecolor": colours.paper, "edgecolor": "none", "alpha": 0.8, "pad": 0.4}
        axes.text(where[0], where[1], labels[box.point].text, bbox=clear, **style)
    sides = [f"{share:.0%}".replace("%", " %") for share in shares]
    number = f"  ·  {counted(len(points), 'input')}" if len(boxes) < len(points) else ""
    style_axes(
        axes,
        colours,
        xlabel=f"first principal component ({sides[0]} of the variance)",
        ylabel=f"second principal component ({sides[1]})",
        title=f"{title or 'Inputs by their vectors'}{number}",
    )
    if width is not None:
        style = {"color": colours.ink, "fontsize": 12, "fontweight": "bold"}
        axes.set_title(axes.get_title("left"), loc="left", pad=24 if kinds else 8, **style)
    axes.grid(axis="both", color=colours.line, linewidth=0.6)
    key: dict[str, Any] = {"facecolor": colours.paper, "edgecolor": "none", "framealpha": 0.85, "fontsize": 9}
    if width is not None:  # the key stands above the map, where it hides no name
        wrap_texts(figure)
        key |= {"loc": "lower left", "bbox_to_anchor": (-0.02, 0.99), "ncols": len(kinds), "borderaxespad": 0.0}
    if kinds:
        axes.legend(labelcolor=colours.ink, **key)
    labeller.report_missing()
    return figure


def _sheet(width: float | None, colours: Theme) -> tuple[Figure, tuple[float, float]]:
    """(a figure with the axes of a map, the size of the map in inches). On a narrow page the title and the names of
    axes take two lines."""
    from matplotlib.figure import Figure

    left, bottom, top, right, size = _LEFT, _BOTTOM, _TOP, _RIGHT, SIZE
    if width is not None:
        left, right, bottom, top = 0.62, 0.08, 0.58, 0.82
        size = (width - left - right, 0.85 * (width - left - right))
    wide, high = left + size[0] + right, bottom + size[1] + top
    figure = Figure(figsize=(wide, high), facecolor=colours.paper)
    figure.add_axes((left / wide, bottom / high, size[0] / wide, size[1] / high))
    return figure, size


def _limits(points: Float[np.ndarray, "points 2"], size: tuple[float, float]) -> tuple[Float[np.ndarray, " 2"], float]:
    """(lower left corner, data units per inch) that leave a margin for names around all points."""
    lowest, highest = points.min(0), points.max(0)
    inches = np.array(size)
    unit = float(((highest - lowest) / (inches - np.minimum((2.4, 0.7), 0.3 * inches))).max()) or 1.0
    middle = (lowest + highest) / 2
    return middle - inches * unit / 2, unit


def _lines(
    axes: Axes,
    points: Float[np.ndarray, "points 2"],
    neighbours: Sequence[Sequence[int]],
    boxes: list[NameBox],
    colours: Theme,
) -> None:
    from matplotlib.collections import LineCollection

    chosen = range(len(points)) if len(points) <= MAX_LINED else [box.point for box in boxes]
    pairs = {tuple(sorted((a, b))) for a in chosen if neighbours for b in neighbours[a]}
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
    options: dict[str, Any] = {"s": 26 if len(points) <= 200 else 11, "linewidths": 0.6, "edgecolors": colours.paper}
    if groups is None:
        axes.scatter(points[:, 0], points[:, 1], color=colours.series[0], zorder=3, **options)
        return
    member = np.array([kinds.index(group) for group in groups])
    for number, kind in enumerate(kinds):
        members = points[member == number]
        marker: dict[str, Any] = {
            "color": colours.series[number],
            "marker": MARKERS[number % len(MARKERS)],
            "zorder": 3,
        }
        axes.scatter(members[:, 0], members[:, 1], label=kind, **marker, **options)
