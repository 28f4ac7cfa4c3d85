"""Attention drawn over its input. The base classes; each kind of input that can be drawn has a file of its own.

A kind of input is drawn in two steps. Its modality returns a record, a subclass of `seq2see.looks.Drawable`, from
`to_drawable(value)`; the record's `view` names the `Overlay` that draws attention over it. An input whose places lie in
time needs little more than the drawing itself:

    @dataclass(frozen=True)
    class Trace(Drawable):                                  # in the file of the modality
        view: ClassVar[str] = "my_parts.view:TraceOverlay"
        values: NDArray[np.float32]

    class TraceOverlay(TimeOverlay):                        # in my_parts/view.py
        input: Trace
        description = "a curve with the weights over time"

        @classmethod
        def span(cls, drawable):
            return 0.0, float(len(drawable.values))

        def draw_input(self, axes, style):
            axes.plot(self.input.values, color=style.theme.ink)
"""

from __future__ import annotations

import base64
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from seq2see.looks import Drawable, Looks
from seq2see.seeing.labels import Labeller
from seq2see.seeing.panels import Panel, mean_panel, top_of_scale
from seq2see.seeing.sheet import Box, ColourBar, Column, Sheet, Style, make_figure
from seq2see.seeing.style import THEMES, Theme, theme_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 120
"""Resolution of drawings inside a page."""


class Overlay(ABC):
    """A map of weights over an input that can be drawn. Each kind of such an input has a subclass, which its record
    names (`Drawable.view`).

    name: of the map; outputs: the symbols that look; description: the alternative text of the drawing; layouts: how the
    places of a map may lie (kinds of `Layout`); a map whose places lie otherwise is drawn without its input.
    """

    name: str
    outputs: list[str]
    description: ClassVar[str]
    layouts: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def of(
        cls, drawable: Any, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> Sequence[Overlay]:
        """The overlays of one map over an input. group: the panels of its heads, which are averaged unless
        `separate_heads` is true; scale: as in `figure.save`."""

    @abstractmethod
    def box(self, style: Style) -> Box:
        """The drawing, with the scale of its colours."""

    @property
    def listed(self) -> bool:
        """Whether a page also lists the weights in a table: places in time have names, cells of an image do not."""
        return False

    def section(self, *, theme: str | None, named: bool) -> str:
        """The overlay as a section of an HTML page, named after its map; without a theme it holds a drawing for each
        theme."""
        themes = [theme_named(theme).name] if theme is not None else list(THEMES)
        title = f'<h2 dir="auto">{escape(self.name)}</h2>\n' if named else ""
        words = escape(" ".join(self.outputs))
        pictures = "".join(
            f'<img{"" if len(themes) == 1 else f" class={name}"} alt="{self.description} for: {words}" '
            f'src="{self._png_url(name)}">'
            for name in themes
        )
        return f"""<section aria-label="{escape(self.name)}">
{title}<figure class="drawing scroll">{pictures}</figure>
</section>"""

    def _png_url(self, theme: str) -> str:
        """The drawing as a data URL."""
        style = Style(theme_named(theme), Labeller())
        figure, file = make_figure(self.box(style), style.theme), BytesIO()
        style.labeller.report_missing()
        figure.savefig(file, format="png", dpi=DPI, facecolor=figure.get_facecolor(), metadata={"Software": "seq2see"})
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def overlays_of(
    looks: Looks, groups: list[list[Panel]], *, separate_heads: bool = False, scale: str = "auto"
) -> list[Overlay]:
    """The overlays of all maps, in order. Each input is read once."""
    looks = replace(looks, pictures={name: cache(show) for name, show in looks.pictures.items()})
    overlays: list[Overlay] = []
    for group in groups:
        drawable = None if group[0].inner else looks.drawable(group[0].name)
        if drawable is not None:
            view = view_of(drawable)
            if looks.layouts.get(group[0].name, {}).get("kind") in view.layouts:
                overlays += view.of(drawable, looks, group, separate_heads=separate_heads, scale=scale)
    return overlays


def view_of(drawable: Drawable) -> type[Overlay]:
    """The class that draws attention over such an input."""
    module, _, name = drawable.view.partition(":")
    view: type[Overlay] = getattr(import_module(module), name)
    return view


def without_overlay(groups: list[list[Panel]], overlays: Sequence[Overlay]) -> list[list[Panel]]:
    """The maps that have no overlay."""
    covered = {overlay.name for overlay in overlays}
    return [group for group in groups if group[0].name not in covered]


def to_list(groups: list[list[Panel]], overlays: Sequence[Overlay]) -> list[list[Panel]]:
    """The maps that a page shows as a table: those without an overlay, and those whose overlay asks for one."""
    return without_overlay(groups, [overlay for overlay in overlays if not overlay.listed])


def known_probabilities(looks: Looks, panel: Panel) -> list[float]:
    """The probabilities of the outputs of a panel; none if they are not known."""
    return looks.probabilities if len(looks.probabilities) == panel.steps else []


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.914)
    '91 %'
    """
    return f"{share:.0%}".replace("%", " %")


def frame_axes(axes: Axes, theme: Theme) -> None:
    """Thin lines around axes."""
    for spine in axes.spines.values():
        spine.set_color(theme.line)
        spine.set_linewidth(0.6)


# ---------------- Inputs over time

_SECONDS = re.compile(r"(\d+(?:\.\d+)?) ?s")


@dataclass(frozen=True)
class TimeOverlay(Overlay):
    """An input drawn over time, from left to right, above a strip of weights for each output.

    input: the record; edges: where its places begin, and where the last one ends, in the unit of the axis; top: the
    weight of the strongest colour; head: counted from 1, None for the mean of all heads; axis: the name of the axis.
    """

    name: str
    input: Any
    weights: Float[np.ndarray, "steps places"]
    edges: Float[np.ndarray, " edges"]
    outputs: list[str]
    probabilities: list[float]
    top: float
    head: int | None = None
    layouts: ClassVar[tuple[str, ...]] = ("frames",)
    axis: ClassVar[str] = "seconds"

    @classmethod
    def of(
        cls, drawable: Any, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> list[Self]:
        panels = group if separate_heads else [mean_panel(group)]
        top, edges = top_of_scale(panels, scale=scale), cls.place_edges(drawable, group[0].inputs)
        name = group[0].name
        return [
            cls(
                name,
                drawable,
                panel.weights,
                edges,
                panel.outputs,
                known_probabilities(looks, panel),
                top,
                panel.head,
            )
            for panel in panels
        ]

    @classmethod
    @abstractmethod
    def span(cls, drawable: Any) -> tuple[float, float]:
        """Where the time axis begins and ends."""

    @classmethod
    def place_edges(cls, drawable: Any, names: Sequence[str]) -> Float[np.ndarray, " edges"]:
        """Where places begin, and where the last one ends; names: of the places."""
        return edges_of(names, cls.span(drawable)[1])

    @abstractmethod
    def draw_input(self, axes: Axes, style: Style) -> None:
        """Draw the input over time; the axes have the limits of `span`, and no ticks along x."""

    @property
    def input_height(self) -> float:
        """Of the drawing of the input, in inches."""
        return INPUT_HEIGHT

    def ticks(self) -> tuple[Sequence[float], Sequence[str]] | None:
        """(positions, names) along the time axis; None: numbers in its unit."""
        return None

    @property
    def listed(self) -> bool:
        return True

    def box(self, style: Style) -> Box:
        """The input, a strip of weights for each output, and the colour bar."""
        scaled = replace(style, top=self.top)
        return Column([Strips(self, scaled), ColourBar(scaled)], gap=0.16)


def edges_of(names: Sequence[str], seconds: float) -> Float[np.ndarray, " edges"]:
    """Where places begin, and where the last one ends: read from their names if these are times; otherwise all places
    are equally long.

    >>> edges_of(["0.00 s", "0.40 s"], 0.6).tolist(), edges_of(["1", "2"], 0.6).tolist()
    ([0.0, 0.4, 0.6], [0.0, 0.3, 0.6])
    """
    starts = seconds_of(names)
    if starts is None or starts[-1] >= seconds:
        return np.linspace(0, seconds, len(names) + 1)
    return np.append(starts, seconds)


def seconds_of(names: Sequence[str]) -> Float[np.ndarray, " names"] | None:
    """Names of places as seconds; None unless all are times in ascending order."""
    matches = [_SECONDS.fullmatch(name) for name in names]
    if not all(matches):
        return None
    times = np.array([float(match[1]) for match in matches if match])
    return times if (np.diff(times) >= 0).all() else None


TIME_WIDTH, INPUT_HEIGHT = 8.6, 1.7  # inches
STRIP_HEIGHT, _GAP, _AXIS = 0.24, 0.1, 0.5
_SYMBOL_SIZE, AXIS_SIZE = 9.5, 8.0


@dataclass
class Strips:
    """The input above one strip for each output; outputs on the left, their probabilities on the right."""

    overlay: TimeOverlay
    style: Style
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.labels = [self.style.labeller.symbol(word) for word in self.overlay.outputs]
        self.left = max(0.62, *(label.measure(_SYMBOL_SIZE)[0] + 0.16 for label in self.labels))
        self.right = 0.5 if self.overlay.probabilities else 0.1
        self.above = 0.22 if self.overlay.head is not None else 0.0
        self.time = min(TIME_WIDTH, max(self.style.room - self.left - self.right, 1.0))
        self.width = self.left + self.time + self.right
        strips = STRIP_HEIGHT * len(self.labels)
        self.height = self.above + self.overlay.input_height + _GAP + strips + _AXIS

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        overlay, theme = self.overlay, self.style.theme
        if overlay.head is not None:
            label = self.style.labeller.text(f"head {overlay.head}")
            sheet.write(x, y + 0.08, label, size=9.0, color=theme.muted, ha="left", va="center")
        self._draw_input(sheet.axes(x + self.left, y + self.above, self.time, overlay.input_height))
        below = y + self.above + overlay.input_height + _GAP
        self._draw_strips(sheet.axes(x + self.left, below, self.time, STRIP_HEIGHT * len(self.labels)))
        for step, label in enumerate(self.labels):
            middle = below + STRIP_HEIGHT * (step + 0.5)
            end = x + self.left - 0.09
            sheet.write(end, middle, label, size=_SYMBOL_SIZE, color=theme.ink, ha="right", va="center_baseline")
            if overlay.probabilities:
                note = self.style.labeller.text(percent(overlay.probabilities[step]))
                beyond = x + self.left + self.time + 0.08
                sheet.write(beyond, middle, note, size=AXIS_SIZE, color=theme.muted, ha="left", va="center_baseline")

    def _draw_input(self, axes: Axes) -> None:
        self.overlay.draw_input(axes, self.style)
        axes.set_xlim(*self.overlay.span(self.overlay.input))
        axes.set_xticks([])
        self._style_axes(axes)

    def _draw_strips(self, axes: Axes) -> None:
        overlay, theme = self.overlay, self.style.theme
        rows = np.arange(len(overlay.outputs) + 1)
        mesh = axes.pcolormesh(overlay.edges, rows, overlay.weights, cmap=theme.colormap(), vmin=0, vmax=overlay.top)
        mesh.set_gid(f"weights {overlay.name}")
        for row in rows[1:-1]:
            axes.axhline(row, color=theme.paper, linewidth=2.0)
        axes.set_xlim(*overlay.span(overlay.input))
        axes.set_ylim(len(overlay.outputs), 0)
        axes.set_yticks([])
        if ticks := overlay.ticks():
            axes.set_xticks(*ticks)
        axes.set_xlabel(overlay.axis, color=theme.muted, fontsize=AXIS_SIZE, labelpad=2)
        self._style_axes(axes)

    def _style_axes(self, axes: Axes) -> None:
        theme = self.style.theme
        axes.set_facecolor(theme.paper)
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        frame_axes(axes, theme)
