"""The key: which colour stands for which weight."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from seq2see.seeing.sheet import Manner, Sheet

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
