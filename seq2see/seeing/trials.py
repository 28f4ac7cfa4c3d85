"""A search for settings as a picture: scores over time, and the score against each key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.errors import UserError
from seq2see.seeing.figure import save_figure
from seq2see.seeing.plots import style_axes
from seq2see.seeing.style import Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
"""Panels of keys side by side."""
SPREAD = 0.06
"""Between trials of the same choice, where choices are 1 apart."""


@dataclass(frozen=True)
class Dot:
    """One trial: when it ended, its score, the value of each key; pruned: it was stopped before its end."""

    minutes: float
    score: float
    values: dict[str, Any]
    pruned: bool = False


@dataclass(frozen=True)
class Axis:
    """A key that was searched. choices: its values where they are no range; log: a logarithmic axis."""

    key: str
    choices: tuple[Any, ...] = ()
    log: bool = False


def trials_plot(
    dots: Sequence[Dot],
    axes: Sequence[Axis],
    *,
    metric: str,
    higher_is_better: bool,
    title: str | None = None,
    paths: Sequence[str | Path] = (),
    theme: str = "light",
) -> Figure:
    """Draw the scores of trials over time with the best so far, and below it the score against each key. Trials that
    were stopped early are hollow: theirs is the score when they were."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    dots = [dot for dot in dots if math.isfinite(dot.score)]
    if not dots:
        raise UserError("nothing to draw: no trial has a score")
    colours = theme_named(theme)
    below = math.ceil(len(axes) / COLUMNS)
    figure = Figure(figsize=(9.6, 3.2 + 2.3 * below), facecolor=colours.paper)
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    grid = figure.add_gridspec(1 + below, COLUMNS, height_ratios=[1.35, *([1.0] * below)])
    direction = "higher is better" if higher_is_better else "lower is better"
    _draw_time(figure.add_subplot(grid[0, :]), dots, colours, f"{metric} ({direction})", higher_is_better)
    best = (max if higher_is_better else min)(
        (dot for dot in dots if not dot.pruned), key=lambda dot: dot.score, default=None
    )
    for place, axis in enumerate(axes):
        panel = figure.add_subplot(grid[1 + place // COLUMNS, place % COLUMNS])
        _draw_key(panel, [dot for dot in dots if axis.key in dot.values], axis, best, colours)
        style_axes(panel, colours, xlabel=axis.key, ylabel=metric if place % COLUMNS == 0 else "", title=None)
    if title:
        figure.suptitle(title, color=colours.ink, fontsize=12, fontweight="bold", x=0.02, ha="left")
    for path in paths:
        save_figure(figure, path)
    return figure


def _draw_time(axes: Axes, dots: Sequence[Dot], colours: Theme, label: str, higher_is_better: bool) -> None:
    _scatter(axes, [(dot.minutes, dot.score) for dot in dots], dots, colours)
    better, best = (max if higher_is_better else min), None
    minutes, scores = [], []
    for dot in sorted((dot for dot in dots if not dot.pruned), key=lambda dot: dot.minutes):
        best = dot.score if best is None else better(best, dot.score)
        minutes.append(dot.minutes)
        scores.append(best)
    if minutes:
        last = max(dot.minutes for dot in dots)
        options: dict[str, Any] = {"where": "post", "color": colours.series[1], "linewidth": 1.6}
        axes.step([*minutes, last], [*scores, scores[-1]], label="best so far", **options)
    legend = axes.legend(frameon=False, fontsize=9, labelcolor=colours.ink)
    legend.set_in_layout(False)
    style_axes(axes, colours, xlabel="minutes of the search", ylabel=label, title=None)
    axes.set_xlim(left=0)


def _draw_key(axes: Axes, dots: Sequence[Dot], axis: Axis, best: Dot | None, colours: Theme) -> None:
    def place(dot: Dot) -> float:
        value = dot.values[axis.key]
        if not axis.choices:
            return float(value)
        return axis.choices.index(value) + SPREAD * (dots.index(dot) % 5 - 2)  # so that equal scores do not hide others

    _scatter(axes, [(place(dot), dot.score) for dot in dots], dots, colours)
    if best is not None and axis.key in best.values:
        ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": colours.series[1], "markeredgewidth": 1.8}
        axes.plot([place(best)], [best.score], "o", markersize=10, **ring)
    if axis.choices:
        axes.set_xticks(range(len(axis.choices)), [str(value) for value in axis.choices])
        axes.set_xlim(-0.5, len(axis.choices) - 0.5)
    elif axis.log:
        axes.set_xscale("log")


def _scatter(axes: Axes, points: Sequence[tuple[float, float]], dots: Sequence[Dot], colours: Theme) -> None:
    colour = colours.series[0]
    for pruned, name, face in ((False, "trained to the end", colour), (True, "stopped early", colours.paper)):
        some = [point for point, dot in zip(points, dots, strict=True) if dot.pruned is pruned]
        if some:
            options: dict[str, Any] = {"markerfacecolor": face, "markeredgecolor": colour, "markersize": 5}
            axes.plot([x for x, _ in some], [y for _, y in some], "o", label=name, **options)
