"""Scenes as boxes of a sheet: the picture itself, then one for each word, with the word above it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from seq2see.looks import Pixels
from seq2see.seeing.lettering import Label
from seq2see.seeing.scenes import Scene
from seq2see.seeing.sheet import Box, Column, Manner, Sheet, flow
from seq2see.seeing.symbols import visible

TILE = 1.85  # inches of height of a picture; wide ones are lower
WIDEST = 7.0
SHEET = 10.2
_WORD, _SMALL = 11.5, 8.5
_HEAD = 0.27  # inches above a picture, for its word


def scene_box(scene: Scene, manner: Manner) -> Box:
    """All of a scene: tiles in rows, and what the light means."""
    width, height = _size(scene.picture)
    whole = "as the model sees it" if scene.head is None else f"head {scene.head}"
    tiles: list[Box] = [Tile(scene.picture, manner, width, height, whole, first=True)]
    tiles += [
        Tile(scene.lit(step, manner.theme), manner, width, height, visible(word), said=scene.said(step))
        for step, word in enumerate(scene.outputs)
    ]
    body = flow(tiles, width=max(SHEET, width), gap=0.2)
    return Column([body, LightKey(scene.top, manner)], gap=0.22)


def _size(picture: Pixels) -> tuple[float, float]:
    """Of a tile's picture in inches, its proportions kept."""
    height, width = picture.shape[:2]
    wide = min(TILE * width / height, WIDEST)
    return wide, wide * height / width


@dataclass
class Tile:
    """A picture under a word, and how sure the model was of it; `first`: the picture as it is, which is no word."""

    picture: Pixels
    manner: Manner
    width: float
    inner: float
    word: str
    said: str | None = None
    first: bool = False
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.height = self.inner + _HEAD

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, letters = self.manner.theme, self.manner.letters
        base = y + _HEAD - 0.08
        size, ink = (_SMALL, theme.muted) if self.first else (_WORD, theme.ink)
        said = letters.text(self.said or "")
        room = self.width - (said.measure(_SMALL)[0] + 0.1 if self.said else 0)
        label = fitted(self.manner, self.word, size, room, bold=not self.first)
        sheet.write(x, base, label, size=size, bold=not self.first, color=ink, ha="left", va="baseline")
        if self.said:
            sheet.write(x + self.width, base, said, size=_SMALL, color=theme.muted, ha="right", va="baseline")
        axes = sheet.axes(x, y + _HEAD, self.width, self.inner)
        axes.imshow(self.picture, aspect="auto", interpolation="antialiased")
        axes.set_gid("picture" if self.first else f"look {self.word}")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(theme.line)
            spine.set_linewidth(0.6)


def fitted(manner: Manner, word: str, size: float, room: float, *, bold: bool) -> Label:
    """A word, cut where it would run into what stands beside it."""
    label = manner.letters.text(word)
    while len(word) > 1 and label.measure(size, bold=bold)[0] > room:
        word = word[:-1]
        label = manner.letters.text(f"{word}…")
    return label


@dataclass
class LightKey:
    """How much light stands for which weight, shown on even grey."""

    top: float
    manner: Manner
    of: str = "cell"
    width: float = 3.4
    height: float = 0.34

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, length = self.manner.theme, 1.6
        grey = np.full((24, 256, 3), 128, dtype=np.uint8)
        ramp = Scene("key", grey, np.linspace(0, self.top, 256)[None, None], [""], [], self.top)
        axes = sheet.axes(x, y, length, 0.12)
        axes.imshow(ramp.lit(0, theme), aspect="auto", extent=(0, self.top, 0, 1))
        axes.set_gid("light")
        axes.set_yticks([])
        ticks = [0, self.top / 2, self.top]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        for spine in axes.spines.values():
            spine.set_color(theme.line)
            spine.set_linewidth(0.6)
        label = self.manner.letters.text(f"attention weight of a {self.of}")
        sheet.write(x + length + 0.14, y + 0.06, label, size=8.0, color=theme.muted, ha="left", va="center")
