"""Values with their intervals, one row each: variants over seeds, agreement beside chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.errors import UserError
from seq2see.seeing.figures import dress
from seq2see.seeing.saving import save_figure
from seq2see.seeing.style import Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.38
"""Inches of a row."""
WHOLE: dict[str, Any] = {"clip_on": False, "in_layout": False}
"""Marks at the very end of an axis are drawn whole, and take no room from it."""


@dataclass(frozen=True)
class Row:
    """A value, the interval around it where there is one, and the single values (seeds) it is the mean of.

    strong: drawn full, the others hollow: told apart without colour.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    points: tuple[float, ...] = ()
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """Rows on an axis of their own; line: a value they are read against; from_zero: amounts, whose ratios count;
    bounds: what a value can be at all, beyond which the axis does not go."""

    label: str
    rows: Sequence[Row]
    line: float | None = None
    width: float = 1.0
    from_zero: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)


def interval_plot(
    columns: Sequence[Column],
    *,
    title: str | None = None,
    paths: Sequence[str | Path] = (),
    theme: str = "light",
) -> Figure:
    """Columns side by side over the same rows, the first row on top; saved to each of the paths."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not columns or not columns[0].rows:
        raise UserError("nothing to draw: no rows were given")
    names = [row.name for row in columns[0].rows]
    if any([row.name for row in column.rows] != names for column in columns):
        raise ValueError("every column needs the same rows")
    colours = theme_named(theme)
    size = (2.2 + 4.0 * sum(column.width for column in columns), 1.3 + ROW * len(names))
    figure = Figure(figsize=size, facecolor=colours.paper, layout=ConstrainedLayoutEngine(w_pad=0.14, h_pad=0.14))
    ratios = [column.width for column in columns]
    every = figure.subplots(1, len(columns), sharey=True, squeeze=False, gridspec_kw={"width_ratios": ratios})[0]
    for axes, column in zip(every, columns, strict=True):
        draw_column(axes, column, colours)
    every[0].set_yticks(range(len(names)), names, color=colours.ink)
    every[0].set_ylim(len(names) - 0.5, -0.5)
    if title:
        figure.suptitle(title, color=colours.ink, fontsize=12, fontweight="bold", x=0.02, ha="left")
    for path in paths:
        save_figure(figure, path)
    return figure


def draw_column(axes: Axes, column: Column, colours: Theme) -> None:
    """One column with its axis, rows from the top down."""
    if column.line is not None:
        axes.axvline(column.line, color=colours.muted, linewidth=1.0, linestyle=(0, (4, 3)))
    for height, row in enumerate(column.rows):
        colour = colours.series[0] if row.strong else colours.ink
        if row.low is not None and row.high is not None:
            ends: dict[str, Any] = {"marker": "|", "markersize": 7, "linewidth": 1.5, "color": colour, **WHOLE}
            axes.plot([row.low, row.high], [height, height], **ends)
        seeds: dict[str, Any] = {"color": colours.muted, "markersize": 4, **WHOLE}
        axes.plot(row.points, [height] * len(row.points), "x", **seeds)
        face = colour if row.strong else colours.paper
        mean: dict[str, Any] = {"markerfacecolor": face, "markersize": 7, "markeredgewidth": 1.5, **WHOLE}
        axes.plot([row.value], [height], "o", color=colour, **mean)
    dress(axes, colours, xlabel=column.label, ylabel="", title=None)
    if column.from_zero:
        axes.set_xlim(left=0)
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, column.bounds[0]), min(high, column.bounds[1]))
    axes.grid(axis="x", color=colours.line, linewidth=0.7)
