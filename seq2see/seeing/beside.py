"""An autoencoder beside PCA: errors, angles between what they can write, and rows as each gives them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seq2see.seeing.figures import draw_line, dress
from seq2see.seeing.intervals import Column, draw_column
from seq2see.seeing.reconstructions import between
from seq2see.seeing.style import Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

Vectors = Sequence[NDArray[np.floating]]


def beside_plot(
    errors: Column,
    rows: Mapping[str, Vectors],
    *,
    angles: Sequence[float] = (),
    shape: tuple[int, ...] | None = None,
    title: str | None = None,
    theme: str = "light",
) -> Figure:
    """errors: a row for each maker; rows: by maker, as many each, drawn as pictures of that shape (height, width), or
    (channels, height, width), and as lines where there is none; angles: in degrees, from small to large."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    colours = theme_named(theme)
    number = len(next(iter(rows.values())))
    below = 0.72 * len(rows) if shape is not None else 1.7
    figure = Figure(figsize=(9.2, 2.7 + below), facecolor=colours.paper)
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=[2.5, below])[:, 0]
    for part in (top, bottom):
        part.set_facecolor(colours.paper)
    ratios = [2, 1] if angles else [1]
    axes = top.subplots(1, len(ratios), squeeze=False, gridspec_kw={"width_ratios": ratios})[0]
    draw_column(axes[0], errors, colours)
    axes[0].set_yticks(range(len(errors.rows)), [row.name for row in errors.rows], color=colours.ink)
    axes[0].set_ylim(len(errors.rows) - 0.5, -0.5)
    if angles:
        across = list(range(1, len(angles) + 1))
        axes[1].bar(across, angles, color=colours.series[0], width=0.62)
        axes[1].set_ylim(0, 90)
        axes[1].set_yticks([0, 30, 60, 90], ["0°", "30°", "60°", "90°"])
        dress(axes[1], colours, xlabel="principal angles, by number", ylabel="", title=None)
        axes[1].set_xticks(across if len(across) <= 12 else [1, len(across)])
    if title:
        figure.suptitle(title, color=colours.ink, fontsize=12, fontweight="bold", x=0.02, ha="left")
    if shape is None:
        _lines(bottom, rows, number, colours)
    else:
        _pictures(bottom, rows, number, shape, colours)
    return figure


def _pictures(
    figure: SubFigure, rows: Mapping[str, Vectors], number: int, shape: tuple[int, ...], colours: Theme
) -> None:
    grid = figure.subplots(len(rows), number, squeeze=False, gridspec_kw={"wspace": 0.04, "hspace": 0.04})
    low, high = _range(next(iter(rows.values())))
    for (name, vectors), line in zip(rows.items(), grid, strict=True):
        for vector, axes in zip(vectors, line, strict=True):
            pixels = between(_shaped((vector - low) / (high - low), shape))
            axes.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_color(colours.line)
        line[0].set_ylabel(name, color=colours.muted, fontsize=9.5, rotation=0, ha="right", va="center")


def _range(given: Vectors) -> tuple[float, float]:
    """What is black and what is white: 0 and 1 where numbers lie between, otherwise the least and the most of them."""
    low, high = min(float(one.min()) for one in given), max(float(one.max()) for one in given)
    return (0.0, 1.0) if 0 <= low <= high <= 1 else (low, high)


def _lines(figure: SubFigure, rows: Mapping[str, Vectors], number: int, colours: Theme) -> None:
    line = figure.subplots(1, number, sharey=True, squeeze=False)[0]
    for place, axes in enumerate(line):
        for index, (name, vectors) in enumerate(rows.items()):
            values = vectors[place]
            draw_line(axes, name, (range(1, len(values) + 1), values.tolist()), index, colours)
        dress(axes, colours, xlabel=f"row {place + 1}", ylabel="", title=None)
        axes.set_xticks([])
    look: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": colours.ink, "handlelength": 2.6}
    figure.legend(*line[0].get_legend_handles_labels(), loc="outside lower left", ncols=len(rows), **look)


def _shaped(vector: NDArray[np.floating], shape: tuple[int, ...]) -> NDArray[np.floating]:
    """(height, width), or (height, width, 3)."""
    if len(shape) == 2:
        return vector.reshape(shape)
    channels = vector.reshape(shape).transpose(1, 2, 0)
    return channels[..., 0] if channels.shape[-1] == 1 else channels
