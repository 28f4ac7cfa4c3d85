"""A hearing as a box: the spectrogram above, below it a strip of weights for each output, all over one axis of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2see.seeing.hearings import Hearing
from seq2see.seeing.key import Key
from seq2see.seeing.sheet import Box, Column, Manner, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, SOUND = 8.6, 1.7
"""Inches of the axis of time, and of the spectrogram's height."""
STRIP, _GAP, _AXIS = 0.24, 0.1, 0.5
_SIZE, _SMALL = 9.5, 8.0


def hearing_box(hearing: Hearing, manner: Manner) -> Box:
    """All of a hearing, and what the colours mean."""
    own = Manner(manner.theme, manner.letters, hearing.top)
    return Column([Strips(hearing, own), Key(own)], gap=0.16)


@dataclass
class Strips:
    """The spectrogram and the strips; words stand where reading begins, what the model was sure of at the other end."""

    hearing: Hearing
    manner: Manner
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.labels = [self.manner.letters.symbol(word) for word in self.hearing.outputs]
        self.left = max(0.62, *(label.measure(_SIZE)[0] + 0.16 for label in self.labels))
        self.right = 0.5 if self.hearing.probabilities else 0.1
        self.top = 0.22 if self.hearing.head is not None else 0.0
        self.width = self.left + WIDTH + self.right
        self.height = self.top + SOUND + _GAP + STRIP * len(self.labels) + _AXIS

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        hearing, theme = self.hearing, self.manner.theme
        if hearing.head is not None:
            label = self.manner.letters.text(f"head {hearing.head}")
            sheet.write(x, y + 0.08, label, size=9.0, color=theme.muted, ha="left", va="center")
        self._spectrogram(sheet.axes(x + self.left, y + self.top, WIDTH, SOUND))
        below = y + self.top + SOUND + _GAP
        self._strips(sheet.axes(x + self.left, below, WIDTH, STRIP * len(self.labels)))
        for step, label in enumerate(self.labels):
            middle = below + STRIP * (step + 0.5)
            end = x + self.left - 0.09
            sheet.write(end, middle, label, size=_SIZE, color=theme.ink, ha="right", va="center_baseline")
            if hearing.probabilities:
                said = self.manner.letters.text(f"{hearing.probabilities[step]:.0%}".replace("%", " %"))
                beyond = x + self.left + WIDTH + 0.08
                sheet.write(beyond, middle, said, size=_SMALL, color=theme.muted, ha="left", va="center_baseline")

    def _spectrogram(self, axes: Axes) -> None:
        """Loudness from the paper's colour up, like weights; frequencies are named where their bands lie."""
        sound, theme = self.hearing.sound, self.manner.theme
        energies = np.asarray(sound.energies, dtype=np.float64)
        low, high = np.quantile(energies, 0.05), float(energies.max())
        extent = (0.0, sound.seconds, 0.0, float(energies.shape[1]))
        look: dict[str, Any] = {"cmap": theme.colormap(), "vmin": low, "vmax": max(high, low + 1e-6)}
        axes.imshow(energies.T, origin="lower", aspect="auto", extent=extent, interpolation="antialiased", **look)
        axes.set_gid("spectrogram")
        places, names = sound.ticks()
        axes.set_yticks(places, names)
        axes.set_ylabel("kHz", color=theme.muted, fontsize=_SMALL, labelpad=2)
        axes.set_xticks([])
        self._dress(axes)

    def _strips(self, axes: Axes) -> None:
        hearing, theme = self.hearing, self.manner.theme
        rows = np.arange(len(hearing.outputs) + 1)
        mesh = axes.pcolormesh(hearing.edges, rows, hearing.weights, cmap=theme.colormap(), vmin=0, vmax=hearing.top)
        mesh.set_gid(f"weights {hearing.name}")
        for row in rows[1:-1]:
            axes.axhline(row, color=theme.paper, linewidth=2.0)
        axes.set_xlim(0, hearing.sound.seconds)
        axes.set_ylim(len(hearing.outputs), 0)
        axes.set_yticks([])
        axes.set_xlabel("seconds", color=theme.muted, fontsize=_SMALL, labelpad=2)
        self._dress(axes)

    def _dress(self, axes: Axes) -> None:
        theme = self.manner.theme
        axes.set_facecolor(theme.paper)
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        for spine in axes.spines.values():
            spine.set_color(theme.line)
            spine.set_linewidth(0.6)
