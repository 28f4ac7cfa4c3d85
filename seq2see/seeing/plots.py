"""Plots in one style: lines, small multiples, intervals, reconstructed images."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import UserError
from seq2see.seeing.figure import save_figure
from seq2see.seeing.style import Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


Numbers = Sequence[float]
Series = tuple[Numbers, Numbers] | tuple[Numbers, Numbers, Numbers, Numbers]

_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.2)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P")
_MARKED = 25  # lines of more points have no markers


def line_plot(
    series: Mapping[str, Series],
    *,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    path: str | Path | None = None,
    theme: str = "light",
    ylim: tuple[float | None, float | None] = (None, None),
    size: tuple[float, float] = (7.0, 4.2),
    doubling: Sequence[float] = (),
) -> Figure:
    """Draw named lines, each (x, y) or (x, y, low, high) with a band between low and high; save them if a path is
    given.

    Lines differ in colour, dash and marker, so that they stay distinct in black and white.
    doubling: tick values of a logarithmic x axis (base 2).
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not series:
        raise UserError("nothing to draw: no series was given")
    colours = theme_named(theme)
    figure = Figure(figsize=size, facecolor=colours.paper, layout=ConstrainedLayoutEngine(w_pad=0.14, h_pad=0.14))
    axes = figure.add_subplot()
    for index, (name, values) in enumerate(series.items()):
        draw_line(axes, name, values, index, colours)
    axes.set_ylim(*ylim)
    if doubling:
        axes.set_xscale("log", base=2)
        axes.set_xticks(doubling, [f"{value:g}" for value in doubling])
        axes.minorticks_off()
    style_axes(axes, colours, xlabel=xlabel, ylabel=ylabel, title=title)
    if len(series) > 1:
        legend = axes.legend(
            facecolor=colours.paper,
            edgecolor="none",
            framealpha=0.85,
            fontsize=9,
            labelcolor=colours.ink,
            handlelength=2.6,
        )
        legend.set_in_layout(False)
    if path is not None:
        save_figure(figure, path)
    return figure


def measure_label(measure: str) -> str:
    """A key of metrics.jsonl in words.

    >>> measure_label("dev.accuracy"), measure_label("loss"), measure_label("dev.loss"), measure_label("dev.rouge_l")
    ('accuracy on dev', 'loss', 'loss on dev', 'rouge_l on dev')
    """
    where, _, name = measure.rpartition(".")
    return f"{name} on {where}" if where else measure


def learning_curve(
    metrics: str | Path | Mapping[str, str | Path],
    *,
    measure: str,
    against: str = "update",
    title: str | None = None,
    path: str | Path | None = None,
    theme: str = "light",
) -> Figure:
    """A measure over training, from the `metrics.jsonl` of one run, or of several by name.

    measure: the key of a line, with dots for nested keys (`dev.exact`). Lines without it are skipped, and so is the
    final line of averaged weights, which is not part of the training curve.
    """
    runs = metrics if isinstance(metrics, Mapping) else {measure: metrics}
    series = {name: read_curve(Path(file), measure=measure, against=against) for name, file in runs.items()}
    return line_plot(series, xlabel=against, ylabel=measure_label(measure), title=title, path=path, theme=theme)


def draw_line(axes: Axes, name: str, values: Series, index: int, colours: Theme) -> None:
    """Draw one line with colour, dash and marker by its index, and a band if low and high are given."""
    if len(values) not in (2, 4) or len({len(numbers) for numbers in values}) != 1 or not len(values[0]):
        lengths = ", ".join(str(len(numbers)) for numbers in values)
        raise UserError(
            f"series '{name}' must be (x, y) or (x, y, low, high), equally long and not empty; lengths: {lengths}"
        )
    colour = colours.series[index % len(colours.series)]
    marker = MARKERS[index % len(MARKERS)] if len(values[0]) <= _MARKED else None
    dash = _DASHES[index % len(_DASHES)]
    options: dict[str, Any] = {
        "color": colour,
        "linestyle": dash,
        "marker": marker,
        "markersize": 4.5,
        "linewidth": 1.9,
    }
    axes.plot(values[0], values[1], label=name, **options)
    if len(values) == 4:
        axes.fill_between(values[0], values[2], values[3], color=colour, alpha=0.16, linewidth=0)


def style_axes(axes: Axes, colours: Theme, *, xlabel: str, ylabel: str, title: str | None) -> None:
    """Apply the common background, labels, ticks and grid."""
    axes.set_facecolor(colours.paper)
    axes.set_xlabel(xlabel, color=colours.muted, fontsize=9.5)
    axes.set_ylabel(ylabel, color=colours.muted, fontsize=9.5)
    if title:
        axes.set_title(title, color=colours.ink, fontsize=12, fontweight="bold", loc="left", pad=12)
    axes.tick_params(colors=colours.muted, labelsize=9, length=0)
    axes.grid(axis="y", color=colours.line, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(colours.muted)


def read_curve(path: Path, *, measure: str, against: str) -> tuple[list[float], list[float]]:
    """(x, y) of the lines of a `metrics.jsonl` that have both keys."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"cannot read '{path}': {error.strerror or error}") from error
    x: list[float] = []
    y: list[float] = []
    keys: set[str] = set()
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}, line {number}: not JSON ({error.msg})") from error
        except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists
            raise UserError(f"{path}, line {number}: no report of a training") from None
        flat = _flat(record)
        keys |= flat.keys()
        if measure in flat and against in flat and not flat.get("averaged"):
            x.append(flat[against])
            y.append(flat[measure])
    if not y:
        numbers = ", ".join(sorted(keys)) or "none"
        raise UserError(f"{path}: no line has both '{measure}' and '{against}'; numbers found: {numbers}")
    return x, y


def _flat(record: Any, prefix: str = "") -> dict[str, float]:
    """The numbers of a record by dotted key."""
    flat: dict[str, float] = {}
    for key, value in record.items() if isinstance(record, dict) else ():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat[f"{prefix}{key}"] = float(value)
    return flat


@dataclass(frozen=True)
class PlotRow:
    """One row of plots by title.

    log: logarithmic y axis; line: a reference value; line_label: its name.
    """

    plots: Mapping[str, Mapping[str, Series]]
    xlabel: str
    ylabel: str
    log: bool = False
    line: float | None = None
    line_label: str = ""


def small_multiples(rows: Sequence[PlotRow], *, title: str | None = None, theme: str = "light") -> Figure:
    """Rows of small plots, each row on one scale; lines of the same name look the same and share one legend."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    colours = theme_named(theme)
    wide = max(len(row.plots) for row in rows)
    size = (0.9 + 3.0 * wide, 1.1 + 2.5 * len(rows))
    figure = Figure(figsize=size, facecolor=colours.paper, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    names = list(dict.fromkeys(name for row in rows for plot in row.plots.values() for name in plot))
    grid = figure.subplots(len(rows), wide, sharey="row", squeeze=False)
    for row, line in zip(rows, grid, strict=True):
        for (head, plot), axes in zip(row.plots.items(), line, strict=False):
            for name, values in plot.items():
                draw_line(axes, name, values, names.index(name), colours)
            if row.log:
                axes.set_yscale("log")
                axes.minorticks_off()
            if row.line is not None:
                axes.axhline(row.line, color=colours.muted, linewidth=1.0, linestyle=(0, (4, 3)))
                end = {"xy": (1, row.line), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
                axes.annotate(
                    row.line_label, **end, xytext=(-2, 3), ha="right", va="bottom", fontsize=8, color=colours.muted
                )
            style_axes(axes, colours, xlabel=row.xlabel, ylabel=row.ylabel if axes is line[0] else "", title=head)
    if title:
        figure.suptitle(title, color=colours.ink, fontsize=12, fontweight="bold", x=0.02, ha="left")
    handles = {text: line for axes in grid.flat for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        [handles[name] for name in names],
        names,
        loc="outside lower left",
        ncols=min(len(names), 3),
        frameon=False,
        fontsize=9,
        labelcolor=colours.ink,
        handlelength=2.6,
    )
    return figure


ROW = 0.38
"""Inches of a row."""
WHOLE: dict[str, Any] = {"clip_on": False, "in_layout": False}
"""Markers at the end of an axis are not clipped and take no space."""


@dataclass(frozen=True)
class Row:
    """A value with its interval, and the single values (seeds) that it is the mean of.

    strong: drawn filled; others are hollow.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    points: tuple[float, ...] = ()
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """Rows on an axis of their own.

    line: a reference value; from_zero: start the axis at 0; bounds: the limits of the axis.
    """

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
    """Draw columns side by side over the same rows, the first row on top, and save them to each path."""
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
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False, gridspec_kw={"width_ratios": ratios})[0]
    for axes, column in zip(panels, columns, strict=True):
        draw_column(axes, column, colours)
    panels[0].set_yticks(range(len(names)), names, color=colours.ink)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    if title:
        figure.suptitle(title, color=colours.ink, fontsize=12, fontweight="bold", x=0.02, ha="left")
    for path in paths:
        save_figure(figure, path)
    return figure


def draw_column(axes: Axes, column: Column, colours: Theme) -> None:
    """Draw one column and its axis, rows from the top down."""
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
    style_axes(axes, colours, xlabel=column.label, ylabel="", title=None)
    if column.from_zero:
        axes.set_xlim(left=0)
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, column.bounds[0]), min(high, column.bounds[1]))
    axes.grid(axis="x", color=colours.line, linewidth=0.7)


SIDE = 0.62
LETTER = 0.085
"""Inches of a cell, and of a character of the row names."""


def reconstruction_sheet(
    rows: Mapping[str, Sequence[NDArray[np.floating] | NDArray[np.uint8]]],
    *,
    title: str | None = None,
    path: str | Path | None = None,
    theme: str = "light",
) -> Figure:
    """Draw rows of images by name (originals, inputs, reconstructions), one column for each example.

    An image is (height, width) or (height, width, 3), of bytes from 0 to 255 or numbers from 0 to 1; values beyond are
    clipped.
    """
    from matplotlib.figure import Figure

    numbers = {name: len(pictures) for name, pictures in rows.items()}
    if not numbers or len(set(numbers.values())) != 1 or not min(numbers.values()):
        counts = ", ".join(f"{name} {number}" for name, number in numbers.items()) or "none"
        raise UserError(f"all rows need the same number of images, at least one; got: {counts}")
    columns, colours = next(iter(numbers.values())), theme_named(theme)
    side = 0.3 + LETTER * max(map(len, rows))
    top = 0.5 if title else 0.15
    width, height = side + columns * SIDE + 0.15, top + len(rows) * SIDE + 0.15
    figure = Figure(figsize=(width, height), facecolor=colours.paper)
    if title:
        figure.text(0.15 / width, 1 - 0.3 / height, title, color=colours.ink, fontsize=12, fontweight="bold")
    for down, (name, pictures) in enumerate(rows.items()):
        upper = top + down * SIDE
        where = 1 - (upper + SIDE / 2) / height
        figure.text((side - 0.1) / width, where, name, color=colours.muted, fontsize=9.5, ha="right", va="center")
        for x, picture in enumerate(pictures):
            left = (side + x * SIDE) / width
            cell = 0.94 * SIDE
            axes = figure.add_axes((left, 1 - (upper + cell) / height, cell / width, cell / height))
            axes.imshow(to_unit_range(picture), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_axis_off()
    if path is not None:
        save_figure(figure, path)
    return figure


def to_unit_range(picture: NDArray[np.floating] | NDArray[np.uint8]) -> NDArray[np.float64]:
    """The image with values from 0 to 1."""
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[-1] != 3):
        raise UserError(f"an image must be (height, width) or (height, width, 3), got {picture.shape}")
    top = 255.0 if picture.dtype == np.uint8 else 1.0
    return np.asarray(picture, dtype=np.float64).clip(0, top) / top


Vectors = Sequence[NDArray[np.floating]]


def pca_comparison_plot(
    errors: Column,
    rows: Mapping[str, Vectors],
    *,
    angles: Sequence[float] = (),
    shape: tuple[int, ...] | None = None,
    title: str | None = None,
    theme: str = "light",
) -> Figure:
    """Compare an autoencoder with PCA: errors, principal angles and reconstructions.

    errors: one row for each method; rows: reconstructions by method, drawn as images of `shape` (height, width) or
    (channels, height, width), or as lines if it is None; angles: in degrees, ascending.
    """
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
        x = list(range(1, len(angles) + 1))
        axes[1].bar(x, angles, color=colours.series[0], width=0.62)
        axes[1].set_ylim(0, 90)
        axes[1].set_yticks([0, 30, 60, 90], ["0°", "30°", "60°", "90°"])
        style_axes(axes[1], colours, xlabel="principal angles, by number", ylabel="", title=None)
        axes[1].set_xticks(x if len(x) <= 12 else [1, len(x)])
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
            pixels = to_unit_range(_shaped((vector - low) / (high - low), shape))
            axes.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_color(colours.line)
        line[0].set_ylabel(name, color=colours.muted, fontsize=9.5, rotation=0, ha="right", va="center")


def _range(vectors: Vectors) -> tuple[float, float]:
    """The values of black and white: 0 and 1 if all numbers lie between, otherwise their minimum and maximum."""
    low, high = min(float(vector.min()) for vector in vectors), max(float(vector.max()) for vector in vectors)
    return (0.0, 1.0) if 0 <= low <= high <= 1 else (low, high)


def _lines(figure: SubFigure, rows: Mapping[str, Vectors], number: int, colours: Theme) -> None:
    line = figure.subplots(1, number, sharey=True, squeeze=False)[0]
    for place, axes in enumerate(line):
        for index, (name, vectors) in enumerate(rows.items()):
            values = vectors[place]
            draw_line(axes, name, (range(1, len(values) + 1), values.tolist()), index, colours)
        style_axes(axes, colours, xlabel=f"row {place + 1}", ylabel="", title=None)
        axes.set_xticks([])
    options: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": colours.ink, "handlelength": 2.6}
    figure.legend(*line[0].get_legend_handles_labels(), loc="outside lower left", ncols=len(rows), **options)


def _shaped(vector: NDArray[np.floating], shape: tuple[int, ...]) -> NDArray[np.floating]:
    """The vector as (height, width) or (height, width, 3)."""
    if len(shape) == 2:
        return vector.reshape(shape)
    channels = vector.reshape(shape).transpose(1, 2, 0)
    return channels[..., 0] if channels.shape[-1] == 1 else channels
