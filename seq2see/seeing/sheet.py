"""Pictures laid out in inches: boxes that know their size, side by side and one below the other, on one sheet.

Token labels vary from one letter to long words in any script; sizes are measured first and the sheet is cut to fit,
so nothing overlaps and nothing is clipped, whatever the number of places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from seq2see.seeing.fonts import Label, Lettering
from seq2see.seeing.style import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MARGIN = 0.22


@dataclass(frozen=True)
class Manner:
    """How everything on a sheet is drawn: colours, letters, and the weight that gets the strongest colour."""

    theme: Theme
    letters: Lettering
    top: float = 1.0


class Box(Protocol):
    """Something with a size in inches that can be drawn with its upper left corner at (x, y), y downwards."""

    width: float
    height: float

    def draw(self, sheet: Sheet, x: float, y: float) -> None: ...


@dataclass
class Sheet:
    """A figure addressed in inches from its upper left corner."""

    figure: Figure
    width: float
    height: float

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        bounds = (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(bounds)

    def write(self, x: float, y: float, label: Label, *, size: float, bold: bool = False, **options: Any) -> None:
        self.figure.text(x / self.width, 1 - y / self.height, label.text, **label.style(size, bold=bold), **options)


@dataclass
class Words:
    """A line of text as a box: titles."""

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
    """Boxes one below the other, their left edges in line."""

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
    """Boxes side by side, their upper edges in line."""

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
    """Boxes side by side; where they do not fit the width, in as few rows as will do, about equally full."""
    widest = max(box.width for box in boxes)
    most = max(1, int((width + gap) / (widest + gap)))
    rows = -(-len(boxes) // most)
    each = -(-len(boxes) // rows)
    lines = [Row(boxes[start : start + each], gap=gap) for start in range(0, len(boxes), each)]
    return lines[0] if len(lines) == 1 else Column(lines, gap=gap)


def on_paper(box: Box, theme: Theme) -> Figure:
    """A figure cut to the size of a box and its margin."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width, height = box.width + 2 * MARGIN, box.height + 2 * MARGIN
    figure = Figure(figsize=(width, height), facecolor=theme.paper)
    FigureCanvasAgg(figure)
    box.draw(Sheet(figure, width, height), MARGIN, MARGIN)
    return figure


# ---------------- The key

_BAR, _GAP = 1.6, 0.14
_SIZE = 8.0


@dataclass
class Key:
    """A slim bar from weight 0 to the top of the scale, with what it measures."""

    manner: Manner
    meaning: str = "attention weight"
    width: float = field(init=False)
    height: float = 0.34

    def __post_init__(self) -> None:
        self.label = self.manner.letters.text(self.meaning)
        self.width = _BAR + _GAP + self.label.measure(_SIZE)[0]

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, length = self.manner.theme, _BAR
        axes = sheet.axes(x, y, length, 0.12)
        extent = (0, self.manner.top, 0, 1)
        axes.imshow(np.linspace(0, 1, 256)[None], cmap=theme.colormap(), aspect="auto", extent=extent, vmin=0, vmax=1)
        axes.set_gid("key")
        axes.set_yticks([])
        ticks = [0, self.manner.top / 2, self.manner.top]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        for spine in axes.spines.values():
            spine.set_color(theme.line)
            spine.set_linewidth(0.6)
        sheet.write(x + length + _GAP, y + 0.06, self.label, size=_SIZE, color=theme.muted, ha="left", va="center")
