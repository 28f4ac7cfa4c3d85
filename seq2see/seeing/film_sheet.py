"""A reel as a box: the film on top, below it a row for each output with the frames it looked at and their weights."""

from __future__ import annotations

from dataclasses import dataclass, field

from seq2see.looks import Pixels
from seq2see.seeing.films import Reel
from seq2see.seeing.scene_sheet import LightKey, fitted
from seq2see.seeing.scenes import in_colour
from seq2see.seeing.sheet import Box, Column, Manner, Row, Sheet, Words
from seq2see.seeing.symbols import visible

FRAME = 1.12
"""Inches across a frame; high ones are narrower."""
_TALLEST = 1.0
_WORD = 1.15
_LINE = 0.2
LEAST = 0.005
"""What has less would be told as 0 %."""


def reel_box(reel: Reel, manner: Manner) -> Box:
    """All of a reel, and what the light means; the film itself stands above the first head only."""
    rows: list[Box] = [Words(manner.letters.text(said_of(reel)), manner.theme.muted, size=8.5)]
    if reel.head in (None, 1):
        film = [_frame(reel, frame, in_colour(reel.film.frames[frame]), "", manner) for frame in reel.columns]
        rows.append(_row(Word("the film", [], manner, film[0].height, first=True), film))
    for step, word in enumerate(reel.outputs):
        shares = reel.shares[step]
        frames = [
            _frame(reel, frame, reel.lit(step, frame, manner.theme), _percent(shares[frame]), manner)
            for frame in reel.columns
        ]
        beside = [f"P = {reel.probabilities[step]:.2f}"] if reel.probabilities else []
        beside += [f"{_percent(reel.elsewhere[step])} elsewhere"] if reel.elsewhere[step] >= LEAST else []
        rows.append(_row(Word(visible(word), beside, manner, frames[0].height), frames))
    return Column([*rows, LightKey(reel.top, manner, of="frame" if reel.whole else "cell")], gap=0.12)


def said_of(reel: Reel) -> str:
    """Which frames are shown, and what stands below each."""
    shown, number = len(reel.columns), len(reel.film.frames)
    head = [] if reel.head is None else [f"head {reel.head}"]
    which = f"{shown} of {number} frames, the most looked at" if shown < number else f"all {number} frames"
    return " · ".join([*head, which, "below each its second, and its share of the look in %"])


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _row(word: Word, frames: list[Frame]) -> Box:
    return Row([word, *frames], gap=0.07)


def _frame(reel: Reel, frame: int, picture: Pixels, weight: str, manner: Manner) -> Frame:
    return Frame(picture, f"{reel.film.times[frame]:.2f} s", weight, manner)


@dataclass
class Word:
    """An output at the beginning of its row, and below it what else there is to say: how sure the model was of it."""

    word: str
    beside: list[str]
    manner: Manner
    height: float
    first: bool = False
    width: float = _WORD

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, middle = self.manner.theme, y + (self.height - _LINE) / 2
        size, ink = (8.5, theme.muted) if self.first else (11.5, theme.ink)
        label = fitted(self.manner, self.word, size, self.width - 0.08, bold=not self.first)
        sheet.write(x, middle, label, size=size, bold=not self.first, color=ink, ha="left", va="center_baseline")
        for line, text in enumerate(self.beside, start=1):
            said = self.manner.letters.text(text)
            sheet.write(x, middle + 0.2 * line, said, size=8.5, color=theme.muted, ha="left", va="center_baseline")


@dataclass
class Frame:
    """A frame, below it when it is shown and its weight."""

    picture: Pixels
    time: str
    weight: str
    manner: Manner
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        high, wide = self.picture.shape[:2]
        self.width = min(FRAME, _TALLEST * wide / high)
        self.inner = self.width * high / wide
        self.height = self.inner + _LINE

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, letters = self.manner.theme, self.manner.letters
        axes = sheet.axes(x, y, self.width, self.inner)
        axes.imshow(self.picture, aspect="auto", interpolation="antialiased")
        axes.set_gid(f"frame {self.time}")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(theme.line)
            spine.set_linewidth(0.6)
        base = y + self.inner + 0.14
        sheet.write(x, base, letters.text(self.time), size=7.5, color=theme.muted, ha="left", va="baseline")
        if self.weight:
            said = letters.text(self.weight)
            sheet.write(x + self.width, base, said, size=8.0, bold=True, color=theme.ink, ha="right", va="baseline")
