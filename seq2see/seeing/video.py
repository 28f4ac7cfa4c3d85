"""Attention over videos: a row of frames for each output, lit where it looked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from seq2see.looks import Looks, Pixels
from seq2see.seeing.image import NOTE_SIZE, WORD_SIZE, ImageOverlay, LightBar, in_colour
from seq2see.seeing.labels import shorten, visible
from seq2see.seeing.overlays import Overlay, frame_axes, known_probabilities, percent
from seq2see.seeing.panels import Panel, mean_panel, top_of_scale
from seq2see.seeing.sheet import Box, Column, Row, Sheet, Style, TextLine
from seq2see.seeing.style import Theme

if TYPE_CHECKING:
    from seq2see.modalities.video import Video

FRAMES = 8
"""Frames shown of a video, or more if the outputs' looks need them."""
MAX_FRAMES = 16
COVERED = 0.9
"""The share of each output's look that the shown frames should cover."""


@dataclass(frozen=True)
class VideoOverlay(Overlay):
    """A video and for each output the weights of its cells; a frame that is looked at as a whole has one cell.

    top: the weight of a cell that is fully lit; columns: the frames that are shown, the same for all outputs and heads,
    so that a column always shows one frame; head: counted from 1, None for the mean of all heads.
    """

    name: str
    video: Video
    weights: Float[np.ndarray, "steps frames rows columns"]
    outputs: list[str]
    probabilities: list[float]
    top: float
    columns: list[int]
    head: int | None = None
    description: ClassVar[str] = "frames that were looked at"
    layouts: ClassVar[tuple[str, ...]] = ("frames", "frames-grid")

    @classmethod
    def of(
        cls, drawable: Video, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> list[VideoOverlay]:
        """Overlays of a map over a video, of its frames or of regions of its frames."""
        name = group[0].name
        panels = group if separate_heads else [mean_panel(group)]
        top = top_of_scale(panels, scale=scale)
        shape = (*looks.layouts[name]["shape"], 1, 1)[:3]
        weights: list[NDArray[np.float64]] = [panel.weights.reshape(panel.steps, *shape) for panel in panels]
        columns = select_frames(np.concatenate([cells.sum((2, 3)) for cells in weights]))
        video = drawable.sample(shape[0])
        return [
            cls(name, video, cells, panel.outputs, known_probabilities(looks, panel), top, columns, panel.head)
            for panel, cells in zip(panels, weights, strict=True)
        ]

    @property
    def whole(self) -> bool:
        """Whether frames are looked at as a whole, not region by region."""
        return self.weights.shape[2:] == (1, 1)

    @property
    def listed(self) -> bool:
        return self.whole

    @property
    def shares(self) -> Float[np.ndarray, "steps frames"]:
        """The weight of each frame, for each output."""
        return np.asarray(self.weights.sum((2, 3)))

    @property
    def elsewhere(self) -> Float[np.ndarray, " steps"]:
        """The weight of the frames that are not shown, for each output."""
        return np.asarray(self.shares.sum(1) - self.shares[:, self.columns].sum(1))

    def lit(self, step: int, frame: int, theme: Theme) -> Pixels:
        """A frame for one output: in colour where it was looked at, faded into the paper elsewhere."""
        image = in_colour(self.video.frames[frame])
        return ImageOverlay(self.name, image, self.weights[step][frame][None], [""], [], self.top).lit(0, theme)

    def box(self, style: Style) -> Box:
        """One row of frames for each output, and the scale of the light; the first head also shows the video itself."""
        rows: list[Box] = [TextLine(style.labeller.text(self._caption()), style.theme.muted, size=8.5)]
        if self.head in (None, 1):
            frames = [self._frame(frame, in_colour(self.video.frames[frame]), "", style) for frame in self.columns]
            rows.append(Row([RowLabel("the video", [], style, frames[0].height, original=True), *frames], gap=0.07))
        for step, word in enumerate(self.outputs):
            shares = self.shares[step]
            frames = [
                self._frame(frame, self.lit(step, frame, style.theme), percent(shares[frame]), style)
                for frame in self.columns
            ]
            notes = [f"P = {self.probabilities[step]:.2f}"] if self.probabilities else []
            notes += [f"{percent(self.elsewhere[step])} elsewhere"] if self.elsewhere[step] >= _LEAST else []
            rows.append(Row([RowLabel(visible(word), notes, style, frames[0].height), *frames], gap=0.07))
        return Column([*rows, LightBar(self.top, style, unit="frame" if self.whole else "cell")], gap=0.12)

    def _caption(self) -> str:
        drawn, number = len(self.columns), len(self.video.frames)
        head = [] if self.head is None else [f"head {self.head}"]
        which = f"{drawn} of {number} frames, the most looked at" if drawn < number else f"all {number} frames"
        return " · ".join([*head, which, "below each: its time and its share of the attention"])

    def _frame(self, frame: int, image: Pixels, share: str, style: Style) -> Frame:
        return Frame(image, f"{self.video.times[frame]:.2f} s", share, style)


def select_frames(shares: Float[np.ndarray, "outputs frames"]) -> list[int]:
    """The frames that any output looked at most, in order of time; all frames of a short video.

    >>> [len(select_frames(shares)) for shares in (np.eye(12)[[3, 9]], np.eye(12), np.full((1, 20), 0.05))]
    [8, 12, 16]
    """
    ranked = np.argsort(-shares.max(0), kind="stable")[:MAX_FRAMES]
    covered = np.cumsum(shares[:, ranked], axis=1) >= COVERED * shares.sum(1, keepdims=True)
    enough = int(np.argmax(covered.all(0))) + 1 if covered.all(0).any() else MAX_FRAMES
    return sorted(ranked[: max(FRAMES, enough)].tolist())


FRAME_WIDTH = 1.12  # inches; tall frames are narrower
MAX_FRAME_HEIGHT = 1.0
_LABEL_WIDTH = 1.15
_TEXT_BELOW = 0.2
_LEAST = 0.005  # smaller shares would be written as 0 %


@dataclass
class RowLabel:
    """The label of a row of frames: an output, with notes below it."""

    word: str
    notes: list[str]
    style: Style
    height: float
    original: bool = False
    width: float = _LABEL_WIDTH

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, middle = self.style.theme, y + (self.height - _TEXT_BELOW) / 2
        size, ink = (NOTE_SIZE, theme.muted) if self.original else (WORD_SIZE, theme.ink)
        bold = not self.original
        label = shorten(self.style.labeller, self.word, size, self.width - 0.08, bold=bold)
        sheet.write(x, middle, label, size=size, bold=bold, color=ink, ha="left", va="center_baseline")
        for line, text in enumerate(self.notes, start=1):
            note, below = self.style.labeller.text(text), middle + 0.2 * line
            sheet.write(x, below, note, size=NOTE_SIZE, color=theme.muted, ha="left", va="center_baseline")


@dataclass
class Frame:
    """A frame of a video above its time and its share of the attention."""

    image: Pixels
    time: str
    share: str
    style: Style
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        high, wide = self.image.shape[:2]
        self.width = min(FRAME_WIDTH, MAX_FRAME_HEIGHT * wide / high)
        self.image_height = self.width * high / wide
        self.height = self.image_height + _TEXT_BELOW

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, labeller = self.style.theme, self.style.labeller
        axes = sheet.axes(x, y, self.width, self.image_height)
        axes.imshow(self.image, aspect="auto", interpolation="antialiased")
        axes.set_gid(f"frame {self.time}")
        axes.set_xticks([])
        axes.set_yticks([])
        frame_axes(axes, theme)
        base = y + self.image_height + 0.14
        sheet.write(x, base, labeller.text(self.time), size=7.5, color=theme.muted, ha="left", va="baseline")
        if self.share:
            share = labeller.text(self.share)
            sheet.write(x + self.width, base, share, size=8.0, bold=True, color=theme.ink, ha="right", va="baseline")
