"""Small plots in rows and columns, each row on one scale, so that they can be compared at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seq2see.seeing.figures import Series, draw_line, dress
from seq2see.seeing.style import theme_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Strip:
    """One row of plots by title; log: of the values; line: a value they are read against; said: what that is."""

    plots: Mapping[str, Mapping[str, Series]]
    xlabel: str
    ylabel: str
    log: bool = False
    line: float | None = None
    said: str = ""


def multiples(strips: Sequence[Strip], *, title: str | None = None, theme: str = "light") -> Figure:
    """Strips one below the other; lines of one name look alike everywhere, and are named once, below."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    colours = theme_named(theme)
    wide = max(len(strip.plots) for strip in strips)
    size = (0.9 + 3.0 * wide, 1.1 + 2.5 * len(strips))
    figure = Figure(figsize=size, facecolor=colours.paper, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    names = list(dict.fromkeys(name for strip in strips for plot in strip.plots.values() for name in plot))
    grid = figure.subplots(len(strips), wide, sharey="row", squeeze=False)
    for strip, row in zip(strips, grid, strict=True):
        for (head, plot), axes in zip(strip.plots.items(), row, strict=False):
            for name, values in plot.items():
                draw_line(axes, name, values, names.index(name), colours)
            if strip.log:
                axes.set_yscale("log")
                axes.minorticks_off()
            if strip.line is not None:
                axes.axhline(strip.line, color=colours.muted, linewidth=1.0, linestyle=(0, (4, 3)))
                end = {"xy": (1, strip.line), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
                axes.annotate(
                    strip.said, **end, xytext=(-2, 3), ha="right", va="bottom", fontsize=8, color=colours.muted
                )
            dress(axes, colours, xlabel=strip.xlabel, ylabel=strip.ylabel if axes is row[0] else "", title=head)
    if title:
        figure.suptitle(title, color=colours.ink, fontsize=12, fontweight="bold", x=0.02, ha="left")
    known = {text: line for axes in grid.flat for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        [known[name] for name in names],
        names,
        loc="outside lower left",
        ncols=min(len(names), 3),
        frameon=False,
        fontsize=9,
        labelcolor=colours.ink,
        handlelength=2.6,
    )
    return figure
