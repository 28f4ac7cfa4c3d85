"""Line plots in the style of the heatmaps: quality by length, learning curves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.errors import UserError
from seq2see.seeing.saving import save_figure
from seq2see.seeing.style import Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Sequence[float]
Series = tuple[Numbers, Numbers] | tuple[Numbers, Numbers, Numbers, Numbers]

_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.2)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P")
_MARKED = 25  # lines of more points than this are drawn without marks


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
    """Lines by name, each (x, y) or (x, y, low, high) with a band between low and high; saved where a path is given.

    Lines differ in colour, dash and mark, so that they stay apart in black and white. doubling: values across that are
    named, on an axis on which twice as much is always as far away.
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
    dress(axes, colours, xlabel=xlabel, ylabel=ylabel, title=title)
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


def said_of(measure: str) -> str:
    """A key of metrics.jsonl in words.

    >>> said_of("dev.accuracy"), said_of("loss"), said_of("dev.loss"), said_of("dev.rouge_l")
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

    measure: the key of a line, with dots for keys inside it (`dev.exact`); lines without it are passed over, and so is
    the one at the end that tells of the mean of several weights, through which training never went.
    """
    runs = metrics if isinstance(metrics, Mapping) else {measure: metrics}
    series = {name: read_curve(Path(file), measure=measure, against=against) for name, file in runs.items()}
    return line_plot(series, xlabel=against, ylabel=said_of(measure), title=title, path=path, theme=theme)


def draw_line(axes: Axes, name: str, values: Series, index: int, colours: Theme) -> None:
    """One line, its colour, dash and mark by its index; a band where low and high are given."""
    if len(values) not in (2, 4) or len({len(numbers) for numbers in values}) != 1 or not len(values[0]):
        lengths = ", ".join(str(len(numbers)) for numbers in values)
        raise UserError(
            f"series '{name}' must be (x, y) or (x, y, low, high), equally long and not empty; lengths: {lengths}"
        )
    colour = colours.series[index % len(colours.series)]
    marker = MARKERS[index % len(MARKERS)] if len(values[0]) <= _MARKED else None
    dash = _DASHES[index % len(_DASHES)]
    look: dict[str, Any] = {"color": colour, "linestyle": dash, "marker": marker, "markersize": 4.5, "linewidth": 1.9}
    axes.plot(values[0], values[1], label=name, **look)
    if len(values) == 4:
        axes.fill_between(values[0], values[2], values[3], color=colour, alpha=0.16, linewidth=0)


def dress(axes: Axes, colours: Theme, *, xlabel: str, ylabel: str, title: str | None) -> None:
    """Paper, labels, ticks and grid as every plot has them."""
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
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"cannot read '{path}': {error.strerror or error}") from error
    across: list[float] = []
    up: list[float] = []
    keys: set[str] = set()
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}, line {number}: not JSON ({error.msg})") from error
        flat = _flat(record)
        keys |= flat.keys()
        if measure in flat and against in flat and not flat.get("averaged"):
            across.append(flat[against])
            up.append(flat[measure])
    if not up:
        found = ", ".join(sorted(keys)) or "none"
        raise UserError(f"{path}: no line has both '{measure}' and '{against}'; numbers found: {found}")
    return across, up


def _flat(record: Any, prefix: str = "") -> dict[str, float]:
    """The numbers of a record by dotted key."""
    found: dict[str, float] = {}
    for key, value in record.items() if isinstance(record, dict) else ():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}{key}"] = float(value)
    return found
