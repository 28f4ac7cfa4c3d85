"""Attention drawn over its input: lit images, frames of a video, strips under a spectrogram."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from PIL import Image

from seq2see.looks import Looks, Pixels, Spectrogram, Video
from seq2see.seeing.fonts import Label
from seq2see.seeing.labels import visible
from seq2see.seeing.panels import Panel, mean_panel, top_of_scale
from seq2see.seeing.sheet import Box, ColourBar, Column, Row, Sheet, Style, TextLine, flow
from seq2see.seeing.style import Theme, rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GHOST = 0.3
"""Opacity of an image where it is not looked at; the rest is the colour of the paper."""

GLOW = 0.3
"""Share of the light's colour where the image is looked at: white walls and black dogs must show that they are lit."""

LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""Weights of red, green and blue in perceived brightness."""

GAMMA = 0.55
"""Light is weight to this power: broad looks, whose every cell has little weight, stay visible beside narrow ones."""


class Overlay(ABC):
    """A map of weights over an input that can be shown: each kind of such an input has one subclass.

    description: the alternative text of the drawing.
    """

    name: str
    outputs: list[str]
    description: ClassVar[str]

    @classmethod
    @abstractmethod
    def of(
        cls, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> Sequence[Overlay]:
        """The overlays of one map, given as the panels of its heads; none if the map lies over another kind of input.

        Heads are averaged unless `separate_heads` is true.
        """

    @abstractmethod
    def box(self, style: Style) -> Box:
        """The drawing, with the scale of its colours."""

    @property
    def listed(self) -> bool:
        """Whether a page also lists the weights in a table: places in time have names, cells of an image do not."""
        return False


def overlays_of(
    looks: Looks, groups: list[list[Panel]], *, separate_heads: bool = False, scale: str = "auto"
) -> list[Overlay]:
    """The overlays of all maps, in order. Each input file is read once."""
    kinds: tuple[type[Overlay], ...] = (ImageOverlay, VideoOverlay, SoundOverlay)
    looks = replace(looks, pictures={name: cache(show) for name, show in looks.pictures.items()})
    return [
        overlay
        for group in groups
        for kind in kinds
        for overlay in kind.of(looks, group, separate_heads=separate_heads, scale=scale)
    ]


def without_overlay(groups: list[list[Panel]], overlays: Sequence[Overlay]) -> list[list[Panel]]:
    """The maps that have no overlay."""
    covered = {overlay.name for overlay in overlays}
    return [group for group in groups if group[0].name not in covered]


def to_list(groups: list[list[Panel]], overlays: Sequence[Overlay]) -> list[list[Panel]]:
    """The maps that a page shows as a table: those without an overlay, and those whose overlay asks for one."""
    return without_overlay(groups, [overlay for overlay in overlays if not overlay.listed])


def _probabilities(looks: Looks, panel: Panel) -> list[float]:
    return looks.probabilities if len(looks.probabilities) == panel.steps else []


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.914)
    '91 %'
    """
    return f"{share:.0%}".replace("%", " %")


# ---------------- Images


@dataclass(frozen=True)
class ImageOverlay(Overlay):
    """An image (height, width, 3) and for each output the weights of its cells (steps, rows, columns).

    top: the weight that is fully lit; head: counted from 1, None for the mean of all heads.
    """

    name: str
    image: Pixels
    weights: NDArray[np.float64]
    outputs: list[str]
    probabilities: list[float]
    top: float
    head: int | None = None
    description: ClassVar[str] = "regions that were looked at"

    @classmethod
    def of(
        cls, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> list[ImageOverlay]:
        """Overlays of a map over an image. Heads are also separate where there is a single output."""
        layout = looks.layouts.get(group[0].name, {})
        spatial = layout.get("kind") in ("grid", "frames")  # frames side by side are a grid of one row
        image = looks.picture(group[0].name) if spatial and not group[0].inner else None
        if image is None:
            return []
        panels = group if separate_heads or group[0].steps == 1 else [mean_panel(group)]
        top = top_of_scale(panels, scale=scale)
        overlays = []
        for panel in panels:
            cells = panel.weights.reshape(panel.steps, -1, layout["shape"][-1])
            if layout.get("direction") == "right-to-left":  # the first column is the rightmost
                cells = cells[..., ::-1]
            known = _probabilities(looks, panel)
            overlays.append(cls(panel.name, in_colour(image), cells, panel.outputs, known, top, panel.head))
        return overlays

    def lit(self, step: int, theme: Theme) -> Pixels:
        """The image for one output: in colour where it was looked at, faded into the paper elsewhere."""
        share = upsample(self.weights[step] / self.top, self.image.shape[:2])[..., None] ** GAMMA
        pixels = self.image.astype(np.float32)
        grey = (pixels * LUMA).sum(2, keepdims=True)
        dim = GHOST * grey + (1 - GHOST) * rgb(theme.paper)
        bright = (1 - GLOW * share) * pixels + GLOW * share * rgb(theme.glow)
        return np.asarray(((1 - share) * dim + share * bright).clip(0, 255).round(), dtype=np.uint8)

    def probability(self, step: int) -> str:
        """The probability of an output in per cent; empty if it is unknown."""
        return percent(self.probabilities[step]) if self.probabilities else ""

    def box(self, style: Style) -> Box:
        """The image itself, then one lit copy for each output, in rows, and the scale of the light."""
        high, wide = self.image.shape[:2]
        width = min(TILE_HEIGHT * wide / high, MAX_TILE_WIDTH)
        height = width * high / wide
        caption = "as the model sees it" if self.head is None else f"head {self.head}"
        tiles: list[Box] = [Tile(self.image, style, width, height, caption, original=True)]
        tiles += [
            Tile(self.lit(step, style.theme), style, width, height, visible(word), note=self.probability(step))
            for step, word in enumerate(self.outputs)
        ]
        return Column([flow(tiles, width=max(SHEET_WIDTH, width), gap=0.2), LightBar(self.top, style)], gap=0.22)


def upsample(weights: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Weights of cells interpolated to an image of (height, width) pixels, without edges between cells.

    >>> upsample(np.array([[0.0, 1.0]]), (1, 4)).round(2).tolist()
    [[0.0, 0.2, 0.8, 1.0]]
    """
    cells = Image.fromarray(weights.astype(np.float32))
    smooth = np.asarray(cells.resize(shape[::-1], Image.Resampling.BICUBIC))
    return np.asarray(smooth.clip(0, 1), dtype=np.float32)


def in_colour(image: Pixels) -> Pixels:
    """An image of one or three channels as (height, width, 3)."""
    return image if image.shape[2] == 3 else image.repeat(3, axis=2)


TILE_HEIGHT = 1.85  # inches; wide images are lower
MAX_TILE_WIDTH = 7.0
SHEET_WIDTH = 10.2
_WORD_SIZE, _NOTE_SIZE = 11.5, 8.5
_CAPTION = 0.27  # inches above an image


@dataclass
class Tile:
    """An image below a word and its probability; original: the input itself, whose caption is not an output."""

    image: Pixels
    style: Style
    width: float
    image_height: float
    word: str
    note: str = ""
    original: bool = False
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.height = self.image_height + _CAPTION

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, labeller = self.style.theme, self.style.labeller
        base = y + _CAPTION - 0.08
        size, ink = (_NOTE_SIZE, theme.muted) if self.original else (_WORD_SIZE, theme.ink)
        note = labeller.text(self.note)
        available = self.width - (note.measure(_NOTE_SIZE)[0] + 0.1 if self.note else 0)
        label = shorten(self.style, self.word, size, available, bold=not self.original)
        sheet.write(x, base, label, size=size, bold=not self.original, color=ink, ha="left", va="baseline")
        if self.note:
            sheet.write(x + self.width, base, note, size=_NOTE_SIZE, color=theme.muted, ha="right", va="baseline")
        axes = sheet.axes(x, y + _CAPTION, self.width, self.image_height)
        axes.imshow(self.image, aspect="auto", interpolation="antialiased")
        axes.set_gid("picture" if self.original else f"look {self.word}")
        axes.set_xticks([])
        axes.set_yticks([])
        _frame_axes(axes, theme)


def shorten(style: Style, word: str, size: float, width: float, *, bold: bool) -> Label:
    """A word cut to a width in inches."""
    label = style.labeller.text(word)
    while len(word) > 1 and label.measure(size, bold=bold)[0] > width:
        word = word[:-1]
        label = style.labeller.text(f"{word}…")
    return label


def _frame_axes(axes: Axes, theme: Theme) -> None:
    for spine in axes.spines.values():
        spine.set_color(theme.line)
        spine.set_linewidth(0.6)


@dataclass
class LightBar:
    """The colour bar of lit images: how much light stands for which weight, shown on even grey."""

    top: float
    style: Style
    unit: str = "cell"
    width: float = 3.4
    height: float = 0.34

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        theme, length = self.style.theme, 1.6
        grey = np.full((24, 256, 3), 128, dtype=np.uint8)
        ramp = ImageOverlay("key", grey, np.linspace(0, self.top, 256)[None, None], [""], [], self.top)
        axes = sheet.axes(x, y, length, 0.12)
        axes.imshow(ramp.lit(0, theme), aspect="auto", extent=(0, self.top, 0, 1))
        axes.set_gid("light")
        axes.set_yticks([])
        ticks = [0, self.top / 2, self.top]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        _frame_axes(axes, theme)
        label = self.style.labeller.text(f"attention weight of a {self.unit}")
        sheet.write(x + length + 0.14, y + 0.06, label, size=8.0, color=theme.muted, ha="left", va="center")


# ---------------- Videos

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

    @classmethod
    def of(
        cls, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> list[VideoOverlay]:
        """Overlays of a map over a video, of its frames or of regions of its frames."""
        name = group[0].name
        layout = looks.layouts.get(name, {})
        in_frames = str(layout.get("kind", "")).startswith("frames") and not group[0].inner
        video = looks.shown(name) if in_frames else None
        if not isinstance(video, Video):
            return []
        panels = group if separate_heads else [mean_panel(group)]
        top = top_of_scale(panels, scale=scale)
        shape = (*layout["shape"], 1, 1)[:3]
        weights: list[NDArray[np.float64]] = [panel.weights.reshape(panel.steps, *shape) for panel in panels]
        columns = select_frames(np.concatenate([cells.sum((2, 3)) for cells in weights]))
        video = video.sample(shape[0])
        return [
            cls(name, video, cells, panel.outputs, _probabilities(looks, panel), top, columns, panel.head)
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
        shown, number = len(self.columns), len(self.video.frames)
        head = [] if self.head is None else [f"head {self.head}"]
        which = f"{shown} of {number} frames, the most looked at" if shown < number else f"all {number} frames"
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
        size, ink = (_NOTE_SIZE, theme.muted) if self.original else (_WORD_SIZE, theme.ink)
        bold = not self.original
        label = shorten(self.style, self.word, size, self.width - 0.08, bold=bold)
        sheet.write(x, middle, label, size=size, bold=bold, color=ink, ha="left", va="center_baseline")
        for line, text in enumerate(self.notes, start=1):
            note, below = self.style.labeller.text(text), middle + 0.2 * line
            sheet.write(x, below, note, size=_NOTE_SIZE, color=theme.muted, ha="left", va="center_baseline")


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
        _frame_axes(axes, theme)
        base = y + self.image_height + 0.14
        sheet.write(x, base, labeller.text(self.time), size=7.5, color=theme.muted, ha="left", va="baseline")
        if self.share:
            share = labeller.text(self.share)
            sheet.write(x + self.width, base, share, size=8.0, bold=True, color=theme.ink, ha="right", va="baseline")


# ---------------- Sounds

_SECONDS = re.compile(r"(\d+(?:\.\d+)?) ?s")


@dataclass(frozen=True)
class SoundOverlay(Overlay):
    """A spectrogram and for each output the weights of its places, which lie between edges in seconds.

    top: the weight of the strongest colour; head: counted from 1, None for the mean of all heads.
    """

    name: str
    sound: Spectrogram
    weights: Float[np.ndarray, "steps places"]
    edges: Float[np.ndarray, " edges"]
    outputs: list[str]
    probabilities: list[float]
    top: float
    head: int | None = None
    description: ClassVar[str] = "spectrogram with the weights over time"

    @classmethod
    def of(
        cls, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> list[SoundOverlay]:
        """Overlays of a map over a sound."""
        name = group[0].name
        in_frames = looks.layouts.get(name, {}).get("kind") == "frames" and not group[0].inner
        sound = looks.shown(name) if in_frames else None
        if not isinstance(sound, Spectrogram):
            return []
        panels = group if separate_heads else [mean_panel(group)]
        top = top_of_scale(panels, scale=scale)
        edges = edges_of(group[0].inputs, sound.seconds)
        return [
            cls(name, sound, panel.weights, edges, panel.outputs, _probabilities(looks, panel), top, panel.head)
            for panel in panels
        ]

    @property
    def listed(self) -> bool:
        return True

    def box(self, style: Style) -> Box:
        """The spectrogram, a strip of weights for each output, and the colour bar."""
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


TIME_WIDTH, SPECTROGRAM_HEIGHT = 8.6, 1.7  # inches
STRIP_HEIGHT, _GAP, _AXIS = 0.24, 0.1, 0.5
_SYMBOL_SIZE, _AXIS_SIZE = 9.5, 8.0


@dataclass
class Strips:
    """The spectrogram above one strip for each output; outputs on the left, their probabilities on the right."""

    overlay: SoundOverlay
    style: Style
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.labels = [self.style.labeller.symbol(word) for word in self.overlay.outputs]
        self.left = max(0.62, *(label.measure(_SYMBOL_SIZE)[0] + 0.16 for label in self.labels))
        self.right = 0.5 if self.overlay.probabilities else 0.1
        self.above = 0.22 if self.overlay.head is not None else 0.0
        self.width = self.left + TIME_WIDTH + self.right
        self.height = self.above + SPECTROGRAM_HEIGHT + _GAP + STRIP_HEIGHT * len(self.labels) + _AXIS

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        overlay, theme = self.overlay, self.style.theme
        if overlay.head is not None:
            label = self.style.labeller.text(f"head {overlay.head}")
            sheet.write(x, y + 0.08, label, size=9.0, color=theme.muted, ha="left", va="center")
        self._draw_spectrogram(sheet.axes(x + self.left, y + self.above, TIME_WIDTH, SPECTROGRAM_HEIGHT))
        below = y + self.above + SPECTROGRAM_HEIGHT + _GAP
        self._draw_strips(sheet.axes(x + self.left, below, TIME_WIDTH, STRIP_HEIGHT * len(self.labels)))
        for step, label in enumerate(self.labels):
            middle = below + STRIP_HEIGHT * (step + 0.5)
            end = x + self.left - 0.09
            sheet.write(end, middle, label, size=_SYMBOL_SIZE, color=theme.ink, ha="right", va="center_baseline")
            if overlay.probabilities:
                note = self.style.labeller.text(percent(overlay.probabilities[step]))
                beyond = x + self.left + TIME_WIDTH + 0.08
                sheet.write(beyond, middle, note, size=_AXIS_SIZE, color=theme.muted, ha="left", va="center_baseline")

    def _draw_spectrogram(self, axes: Axes) -> None:
        sound, theme = self.overlay.sound, self.style.theme
        energies = np.asarray(sound.energies, dtype=np.float64)
        low, high = np.quantile(energies, 0.05), float(energies.max())
        extent = (0.0, sound.seconds, 0.0, float(energies.shape[1]))
        colours: dict[str, Any] = {"cmap": theme.colormap(), "vmin": low, "vmax": max(high, low + 1e-6)}
        axes.imshow(energies.T, origin="lower", aspect="auto", extent=extent, interpolation="antialiased", **colours)
        axes.set_gid("spectrogram")
        positions, names = sound.ticks()
        axes.set_yticks(positions, names)
        axes.set_ylabel("kHz", color=theme.muted, fontsize=_AXIS_SIZE, labelpad=2)
        axes.set_xticks([])
        self._style_axes(axes)

    def _draw_strips(self, axes: Axes) -> None:
        overlay, theme = self.overlay, self.style.theme
        rows = np.arange(len(overlay.outputs) + 1)
        mesh = axes.pcolormesh(overlay.edges, rows, overlay.weights, cmap=theme.colormap(), vmin=0, vmax=overlay.top)
        mesh.set_gid(f"weights {overlay.name}")
        for row in rows[1:-1]:
            axes.axhline(row, color=theme.paper, linewidth=2.0)
        axes.set_xlim(0, overlay.sound.seconds)
        axes.set_ylim(len(overlay.outputs), 0)
        axes.set_yticks([])
        axes.set_xlabel("seconds", color=theme.muted, fontsize=_AXIS_SIZE, labelpad=2)
        self._style_axes(axes)

    def _style_axes(self, axes: Axes) -> None:
        theme = self.style.theme
        axes.set_facecolor(theme.paper)
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        _frame_axes(axes, theme)
