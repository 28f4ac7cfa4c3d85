"""Words shaded by weight, as they stand in the text: what a single row of weights (a label's) looks like best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seq2see.seeing.panels import Panel
from seq2see.seeing.sheet import Manner, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE = 7.2  # inches of text to a line
_SIZE = 11.0
_PAD = 0.07
_GAP = 0.05
_NUMBERED = 60  # up to so many words carry their weight in figures


@dataclass
class ShadedWords:
    """The words of one input in lines, each on the colour of its weight, its weight in figures below
    (not given: where the words are few)."""

    panel: Panel
    manner: Manner
    numbered: bool | None = None
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.labels = [self.manner.letters.symbol(symbol) for symbol in self.panel.inputs]
        sizes = [label.measure(_SIZE) for label in self.labels]
        if self.numbered is None:
            self.numbered = len(self.labels) <= _NUMBERED
        least = 0.3 if self.numbered else 0.18
        self.widths = [max(least, width + 2 * _PAD) for width, _ in sizes]
        self.box_height = max(0.3, max(height for _, height in sizes) + 2 * _PAD)
        self.pitch = self.box_height + (0.24 if self.numbered else 0.07)
        self.lines = self._broken()
        self.width = max(self._length(line) for line in self.lines)
        self.height = len(self.lines) * self.pitch

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        axes = sheet.axes(x, y, self.width, self.height)
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.axis("off")
        for row, line in enumerate(self.lines):
            left = 0.0
            for place in line:
                wide = self.widths[place]
                start = self.width - left - wide if self.panel.direction == "rtl" else left
                self._draw_word(axes, place, start, row * self.pitch)
                left += wide + _GAP

    def _draw_word(self, axes: Axes, place: int, x: float, y: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        theme, label, wide = self.manner.theme, self.labels[place], self.widths[place]
        weight = float(self.panel.weights[0, place])
        share = weight / self.manner.top
        rounded = "round,pad=0,rounding_size=0.05"
        box = FancyBboxPatch((x, y), wide, self.box_height, boxstyle=rounded, fc=theme.colormap()(share), ec="none")
        box.set_gid(f"place {place + 1}")
        axes.add_patch(box)
        centre: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
        middle, colour = x + wide / 2, theme.ink_on(share)
        axes.text(middle, y + self.box_height / 2, label.text, color=colour, **centre, **label.style(_SIZE))
        if self.numbered:
            axes.text(middle, y + self.box_height + 0.09, f"{weight:.2f}", color=theme.muted, fontsize=6.5, **centre)

    def _broken(self) -> list[list[int]]:
        """Places in lines, as a paragraph is broken."""
        lines: list[list[int]] = [[]]
        for place in range(len(self.labels)):
            if lines[-1] and self._length([*lines[-1], place]) > LINE:
                lines.append([])
            lines[-1].append(place)
        return lines

    def _length(self, line: list[int]) -> float:
        return sum(self.widths[place] for place in line) + _GAP * (len(line) - 1)
