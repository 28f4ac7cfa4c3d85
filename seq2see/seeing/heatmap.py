"""Heatmaps: outputs as rows, inputs as columns, with cells sized by their number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2see.seeing.labels import Label, shorten
from seq2see.seeing.panels import Panel
from seq2see.seeing.paper import LABEL
from seq2see.seeing.sheet import Box, Column, Sheet, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TALLEST = 55.0  # inches; beyond this, rows get thinner and their labels are thinned out
SMALLEST_LABEL = 6.5  # points
NARROWEST_BAND = 30
VECTOR_CELLS = 6000  # above this an SVG keeps its text as text and its cells as one image
_GAP = 0.07
_LINE = 1.25  # height of a line of labels, of their size
LEGIBLE_CELL, ROOMY_CELL = SMALLEST_LABEL * _LINE / 72, 0.95 * LABEL * _LINE / 72  # inches
_AXIS = 0.26  # height of the axis labels "input" and "output"


def heatmap(panel: Panel, style: Style) -> Box:
    """The heatmap of a panel; columns that do not fit in one line continue in bands below. On paper, cells get smaller
    first, down to those whose labels can be read."""
    bands = bands_for(panel.places, panel.steps)
    parts = _bands(panel, style, bands)
    if _width(parts) > style.room:
        while bands < panel.places and not _fits(panel, style, bands, cell=LEGIBLE_CELL):
            bands += 1
        parts = _bands(panel, style, bands, shrink=_largest_shrink(panel, style, bands))
    return parts[0] if len(parts) == 1 else Column(parts, gap=0.3)


def is_unbroken(panel: Panel, style: Style) -> bool:
    """Whether the columns of a panel fit into the room of a style in as few bands as without its limit, with labels of
    about the usual size."""
    return _fits(panel, style, bands_for(panel.places, panel.steps), cell=ROOMY_CELL)


def _fits(panel: Panel, style: Style, bands: int, *, cell: float) -> bool:
    return _width(_bands(panel, style, bands, shrink=_shrink_to(cell, panel, bands))) <= style.room


def _shrink_to(cell: float, panel: Panel, bands: int) -> float:
    return min(cell / _cell_size(max(math.ceil(panel.places / bands), panel.steps)), 1.0)


def _largest_shrink(panel: Panel, style: Style, bands: int) -> float:
    """By bisection: widths of slanted labels depend on the size of cells too."""
    low, high = _shrink_to(LEGIBLE_CELL, panel, bands), 1.0
    for _ in range(6):
        middle = (low + high) / 2
        if _width(_bands(panel, style, bands, shrink=middle)) <= style.room:
            low = middle
        else:
            high = middle
    return low


def _bands(panel: Panel, style: Style, number: int, *, shrink: float = 1.0) -> list[Heatmap]:
    edges = np.linspace(0, panel.places, number + 1).round().astype(int).tolist()
    return [Heatmap(panel, style, columns=slice(*pair), shrink=shrink) for pair in pairwise(edges)]


def _width(parts: list[Heatmap]) -> float:
    return max(part.width for part in parts)


def bands_for(places: int, steps: int) -> int:
    """The number of bands that brings a map closest to the shape of a page."""
    around = 6  # rows' worth of labels above each band
    most = max(1, places // NARROWEST_BAND)
    return min(range(1, most + 1), key=lambda bands: abs(math.log(places / bands / (bands * (steps + around)) / 1.5)))


@dataclass
class Heatmap:
    """One band of a panel: row labels on the side where reading starts, column labels above."""

    panel: Panel
    style: Style
    columns: slice
    shrink: float = 1.0
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        labeller, panel = self.style.labeller, self.panel
        self.weights = panel.weights[:, self.columns]
        steps, places = self.weights.shape
        self.across = [labeller.symbol(symbol) for symbol in panel.inputs[self.columns]]
        self.down = [labeller.symbol(symbol) for symbol in panel.outputs]
        self.cell = _cell_size(max(places, steps)) * self.shrink
        self.cell_height = min(self.cell, TALLEST / steps)
        if self.style.room < math.inf:
            self.size = min(LABEL, self.cell * 72 / _LINE)
            most = 0.4 * self.style.room
            self.down = [shorten(labeller, label.text, self.size, most) for label in self.down]
        else:
            self.size = max(SMALLEST_LABEL, min(10.5, self.cell * 72 * 0.55))
        self.tilt = self._tilt()
        self.label_width = max(label.measure(self.size)[0] for label in self.down)
        self.depth = max(label.depth(self.size) for label in self.across)
        self.label_height = max(self._rise(label) for label in self.across)
        self.left = _AXIS + self.label_width + _GAP
        self.top = _AXIS + self.label_height + _GAP + 0.02
        self.width = self.left + places * self.cell + self._overhang()
        self.height = self.top + steps * self.cell_height

    @property
    def mirrored(self) -> bool:
        return self.panel.direction == "rtl"

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        steps, places = self.weights.shape
        start = x + self._overhang() if self.mirrored else x + self.left
        axes = sheet.axes(start, y + self.top, places * self.cell, steps * self.cell_height)
        self._paint(axes)
        self._write_columns(axes)
        self._write_rows(axes)
        self._name_axes(sheet, start, y)

    def _paint(self, axes: Axes) -> None:
        theme, (steps, places) = self.style.theme, self.weights.shape
        roomy = self.cell_height >= 0.15
        mesh = axes.pcolormesh(
            self.weights,
            cmap=theme.colormap(),
            vmin=0,
            vmax=self.style.top,
            edgecolors=theme.paper if roomy else "face",
            linewidth=min(1.4, self.cell * 72 * 0.06) if roomy else 0.1,
            rasterized=steps * places > VECTOR_CELLS,
        )
        mesh.set_gid(f"weights {self.panel.name}")
        self._mark_chosen(axes)
        axes.set_xlim((places, 0) if self.mirrored else (0, places))
        axes.set_ylim(steps, 0)
        axes.set_facecolor(theme.paper)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)

    def _mark_chosen(self, axes: Axes) -> None:
        """Draw a ring in each cell that a hard choice selected."""
        from matplotlib.patches import Ellipse

        first, places = self.columns.start or 0, self.weights.shape[1]
        side, colour = 0.5 * min(self.cell, self.cell_height), self.style.theme.series[1]
        for step, place in enumerate(self.panel.chosen):
            if first <= place < first + places:
                middle = (place - first + 0.5, step + 0.5)
                ring = Ellipse(middle, side / self.cell, side / self.cell_height, fill=False, ec=colour, lw=1.8)
                ring.set_gid(f"chosen {step + 1}")
                axes.add_patch(ring)

    def _write_columns(self, axes: Axes) -> None:
        """Write the column labels: horizontal ones share a baseline, others start at their columns; right-to-left
        words lean the other way."""
        offset, anchor, vertical = _GAP + 0.02, "right" if self.mirrored else "left", "center_baseline"
        if self.tilt == 0:
            offset, anchor, vertical = _GAP + self.depth, "center", "baseline"
        for place, label in enumerate(self.across):
            axes.annotate(
                label.text,
                (place + 0.5, 0),
                xytext=(0, offset * 72),
                textcoords="offset points",
                rotation=-self.tilt if self.mirrored else self.tilt,
                rotation_mode="anchor",
                ha=anchor,
                va=vertical,
                color=self.style.theme.ink,
                annotation_clip=False,
                **label.style(self.size),
            )

    def _write_rows(self, axes: Axes) -> None:
        every = max(1, math.ceil(round(self.size / 72 * _LINE / self.cell_height, 6)))
        offset = _GAP * 72
        for step in range(0, len(self.down), every):
            label = self.down[step]
            axes.annotate(
                label.text,
                (0, step + 0.5),
                xytext=(offset if self.mirrored else -offset, 0),
                textcoords="offset points",
                ha="left" if self.mirrored else "right",
                va="center_baseline",
                color=self.style.theme.ink,
                annotation_clip=False,
                **label.style(self.size),
            )

    def _name_axes(self, sheet: Sheet, start: float, y: float) -> None:
        """Name both axes; in bands also the range of places."""
        labeller, places = self.style.labeller, self.weights.shape[1]
        first = self.columns.start or 0
        part = f", {first + 1} to {first + places} of {self.panel.places}" if places < self.panel.places else ""
        edge, side, arrow, outside = start, "left", "→", start - self.left + _AXIS * 0.3
        if self.mirrored:
            end = start + places * self.cell
            edge, side, arrow, outside = end, "right", "←", end + self.left - _AXIS * 0.3
        options: dict[str, Any] = {"size": 8.0, "color": self.style.theme.muted}
        sheet.write(
            edge, y + _AXIS * 0.3, labeller.text(f"{self.panel.across}{part} {arrow}"), ha=side, va="center", **options
        )
        sheet.write(
            outside, y + self.top, labeller.text(f"← {self.panel.down}"), rotation=90, ha="center", va="top", **options
        )

    def _tilt(self) -> int:
        """The rotation of column labels: 0 if they fit their columns, 45 if columns are wide enough, otherwise 90."""
        widest = max(label.measure(self.size)[0] for label in self.across)
        if widest <= self.cell * 0.94:
            return 0
        return 45 if self.cell >= 0.26 else 90

    def _rise(self, label: Label) -> float:
        """The height of a label above its column."""
        width, height = label.measure(self.size)
        flat = height - label.depth(self.size) + self.depth
        return {0: flat, 45: (width + height) * math.sqrt(0.5), 90: width}[self.tilt]

    def _overhang(self) -> float:
        """How far slanted labels reach beyond the last column."""
        if self.tilt != 45:
            return 0.0
        count = len(self.across)
        reach = (self._rise(label) - (count - place - 0.5) * self.cell for place, label in enumerate(self.across))
        return max(0.0, *reach)


def _cell_size(count: int) -> float:
    """The side of a cell in inches: large for a word, small for a page."""
    return 0.42 if count <= 12 else 0.34 if count <= 24 else 0.26 if count <= 44 else 0.18
