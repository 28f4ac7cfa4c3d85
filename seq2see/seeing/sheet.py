"""Layout in inches: boxes that know their size, in rows and columns on one sheet.

Labels range from one letter to long words in any script. Sizes are measured first and the figure is made to fit, so
nothing overlaps or is clipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from seq2see.seeing.labels import Label, Labeller
from seq2see.seeing.paper import PRINT_MARGIN, Paper, scale_figure
from seq2see.seeing.style import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MARGIN = 0.22


@dataclass(frozen=True)
class Style:
    """How everything on a sheet is drawn: colours, labels, the weight with the strongest colour, and the width in
    inches that drawings have to fit in (infinite: they are as wide as suits them)."""

    theme: Theme
    labeller: Labeller
    top: float = 1.0
    room: float = math.inf


class Box(Protocol):
    """Something of known size in inches that can be drawn with its upper left corner at (x, y); y points down."""

    width: float
    height: float

    def draw(self, sheet: Sheet, x: float, y: float) -> None: ...


@dataclass
class Sheet:
    """A figure with coordinates in inches from its upper left corner."""

    figure: Figure
    width: float
    height: float

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        bounds = (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(bounds)

    def write(self, x: float, y: float, label: Label, *, size: float, bold: bool = False, **options: Any) -> None:
        self.figure.text(x / self.width, 1 - y / self.height, label.text, **label.style(size, bold=bold), **options)


@dataclass
class TextLine:
    """A line of text, such as a title."""

    label: Label
    colour: str
    size: float = 11.0
    bold: bool = False
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.width, height = self.label.measure(self.size, bold=self.bold)
        self.height = max(height, self.size / 72 * 1.1)

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        middle = y + self.height / 2
        sheet.write(x, middle, self.label, size=self.size, bold=self.bold, color=self.colour, ha="left", va="center")


@dataclass
class Column:
    """Boxes below each other, aligned left."""

    boxes: Sequence[Box]
    gap: float = 0.2
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.width = max(box.width for box in self.boxes)
        self.height = sum(box.height for box in self.boxes) + self.gap * (len(self.boxes) - 1)

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        for box in self.boxes:
            box.draw(sheet, x, y)
            y += box.height + self.gap


@dataclass
class Row:
    """Boxes side by side, aligned at the top."""

    boxes: Sequence[Box]
    gap: float = 0.35
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.width = sum(box.width for box in self.boxes) + self.gap * (len(self.boxes) - 1)
        self.height = max(box.height for box in self.boxes)

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        for box in self.boxes:
            box.draw(sheet, x, y)
            x += box.width + self.gap


def flow(boxes: Sequence[Box], *, width: float, gap: float = 0.35) -> Box:
    """Boxes side by side, wrapped into as few rows as the width allows, about equally full."""
    widest = max(box.width for box in boxes)
    fitting = max(1, int(min((width + gap) / (widest + gap) + 1e-9, len(boxes))))
    rows = -(-len(boxes) // fitting)
    per_row = -(-len(boxes) // rows)
    lines = [Row(boxes[start : start + per_row], gap=gap) for start in range(0, len(boxes), per_row)]
    return lines[0] if len(lines) == 1 else Column(lines, gap=gap)


def make_figure(box: Box, theme: Theme, *, paper: Paper | None = None) -> Figure:
    """A figure of the size of a box plus margins; with a paper, of its width, the box in the middle."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from seq2see.seeing.shown_figure import ShownFigure  # late: matplotlib is imported only to draw

    margin = MARGIN if paper is None else PRINT_MARGIN
    width, height = box.width + 2 * margin, box.height + 2 * margin
    if paper is not None and paper.width is not None:
        width = max(width, paper.room)
    figure = ShownFigure(figsize=(width, height), facecolor=theme.paper)
    FigureCanvasAgg(figure)
    box.draw(Sheet(figure, width, height), (width - box.width) / 2, margin)
    if paper is not None:
        scale_figure(figure, paper.scale if paper.width is None else paper.width / width)
    return figure


_BAR, _GAP = 1.6, 0.14
_SIZE = 8.0


@dataclass
class ColourBar:
    """A thin colour bar from 0 to the top of the scale, with its meaning."""

    style: Style
    meaning: str = "attention weight"
    width: float = field(init=False)
    height: float = 0.34

    def __post_init__(self) -> None:
        self.label = self.style.labeller.text(self.meaning)
        self.width = _BAR + _GAP + self.label.measure(_SIZE)[0]

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, length = self.style.theme, _BAR
        axes = sheet.axes(x, y, length, 0.12)
        extent = (0, self.style.top, 0, 1)
        axes.imshow(np.linspace(0, 1, 256)[None], cmap=theme.colormap(), aspect="auto", extent=extent, vmin=0, vmax=1)
        axes.set_gid("key")
        axes.set_yticks([])
        ticks = [0, self.style.top / 2, self.style.top]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        for spine in axes.spines.values():
            spine.set_color(theme.line)
            spine.set_linewidth(0.6)
        sheet.write(x + length + _GAP, y + 0.06, self.label, size=_SIZE, color=theme.muted, ha="left", va="center")
