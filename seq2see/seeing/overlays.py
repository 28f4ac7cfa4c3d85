"""Looks that lie over their input: a picture, a video, a sound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from PIL import Image

from seq2see.looks import Film, Looks, Pixels, Spectrogram
from seq2see.seeing.fonts import Label
from seq2see.seeing.labels import visible
from seq2see.seeing.panels import Panel, mean_of, top_of_scale
from seq2see.seeing.sheet import Box, Column, Key, Manner, Row, Sheet, Words, flow
from seq2see.seeing.style import Theme, rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from seq2see.seeing.sheet import Box, Manner


# ---------------- Looks at a picture

GHOST = 0.3
"""How much is left of a picture where it is not looked at; the rest is paper."""

GLOW = 0.3
"""How much of what is looked at is the colour of light: white walls and black dogs show that they are lit."""

LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""How bright red, green and blue are to the eye."""

EYE = 0.55
"""Light by weight to this power: broad looks, whose every cell has little, are seen beside narrow ones."""


@dataclass(frozen=True)
class Scene:
    """A picture (height, width, 3), and for each output the weights of its cells (steps, rows, columns); top: the
    weight that is fully lit; head: which one, from 1, where heads are told apart."""

    name: str
    picture: Pixels
    weights: NDArray[np.float64]
    outputs: list[str]
    probabilities: list[float]
    top: float
    head: int | None = None

    def said(self, step: int) -> str | None:
        """The probability of an output in figures, where it is known.

        >>> Scene("image", np.zeros((1, 1, 3), np.uint8), np.ones((1, 1, 1)), ["cat"], [0.914], 1.0).said(0)
        '91 %'
        """
        return f"{self.probabilities[step]:.0%}".replace("%", " %") if self.probabilities else None

    def lit(self, step: int, theme: Theme) -> Pixels:
        """The picture as an output saw it: in its colours where it was looked at, elsewhere a ghost on paper."""
        share = spread(self.weights[step] / self.top, self.picture.shape[:2])[..., None] ** EYE
        pixels = self.picture.astype(np.float32)
        grey = (pixels * LUMA).sum(2, keepdims=True)
        dim = GHOST * grey + (1 - GHOST) * rgb(theme.paper)
        bright = (1 - GLOW * share) * pixels + GLOW * share * rgb(theme.glow)
        return np.asarray(((1 - share) * dim + share * bright).clip(0, 255).round(), dtype=np.uint8)


def scenes_of(looks: Looks, groups: list[list[Panel]], *, apart: bool = False, scale: str = "auto") -> list[Scene]:
    """The scenes of those maps that lie over a picture. Heads are told apart where that is asked for and where there
    is one output; otherwise their mean is shown."""
    found: list[Scene] = []
    for group in groups:
        layout = looks.layouts.get(group[0].name, {})
        lies = layout.get("kind") in ("grid", "frames")  # frames side by side are a grid of one row
        picture = looks.picture(group[0].name) if lies and not group[0].inner else None
        if picture is None:
            continue
        views = group if apart or group[0].steps == 1 else [mean_of(group)]
        top = top_of_scale(views, scale=scale)
        for view in views:
            cells = view.weights.reshape(view.steps, -1, layout["shape"][-1])
            if layout.get("direction") == "right-to-left":  # the first column is the rightmost
                cells = cells[..., ::-1]
            known = looks.probabilities if len(looks.probabilities) == view.steps else []
            found.append(Scene(view.name, in_colour(picture), cells, view.outputs, known, top, view.head))
    return found


def spread(weights: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Weights of cells over all pixels of a picture of that (height, width), without edges between cells.

    >>> spread(np.array([[0.0, 1.0]]), (1, 4)).round(2).tolist()
    [[0.0, 0.2, 0.8, 1.0]]
    """
    cells = Image.fromarray(weights.astype(np.float32))
    smooth = np.asarray(cells.resize(shape[::-1], Image.Resampling.BICUBIC))
    return np.asarray(smooth.clip(0, 1), dtype=np.float32)


def in_colour(picture: Pixels) -> Pixels:
    """(height, width, 3), of one channel or three."""
    return picture if picture.shape[2] == 3 else picture.repeat(3, axis=2)


# ---------------- Looks at a video

MOST = 8
"""Frames shown of a film, or as many more as every output's look needs."""
WIDEST_FILM = 16
"""Frames shown at the very most."""
NEARLY = 0.9
"""The part of each output's look that is shown, where there is room."""


@dataclass(frozen=True)
class Reel:
    """A film, and for each output the weights of the cells of its frames (steps, frames, rows, columns), one cell where
    whole frames are looked at; top: the weight of a cell that is fully lit; columns: the frames that are shown, the
    same of every output and of every head, so that what stands one below the other is one frame."""

    name: str
    film: Film
    weights: Float[np.ndarray, "steps frames rows columns"]
    outputs: list[str]
    probabilities: list[float]
    top: float
    columns: list[int]
    head: int | None = None

    @property
    def whole(self) -> bool:
        """Whether frames are looked at as they are, not region by region."""
        return self.weights.shape[2:] == (1, 1)

    @property
    def shares(self) -> Float[np.ndarray, "steps frames"]:
        """How much of each output's look went to each frame."""
        return np.asarray(self.weights.sum((2, 3)))

    @property
    def elsewhere(self) -> Float[np.ndarray, " steps"]:
        """How much of each output's look went to frames that are not shown."""
        return np.asarray(self.shares.sum(1) - self.shares[:, self.columns].sum(1))

    def lit(self, step: int, frame: int, theme: Theme) -> Pixels:
        """A frame as an output saw it: its cells in their colours where they were looked at, elsewhere a ghost."""
        scene = Scene(
            self.name, in_colour(self.film.frames[frame]), self.weights[step][frame][None], [""], [], self.top
        )
        return scene.lit(0, theme)


def reels_of(looks: Looks, groups: list[list[Panel]], *, apart: bool = False, scale: str = "auto") -> list[Reel]:
    """The reels of those maps that lie over a video, frames or regions of frames. Heads are told apart where that is
    asked for; otherwise their mean is shown."""
    found: list[Reel] = []
    for group in groups:
        name = group[0].name
        layout = looks.layouts.get(name, {})
        over = str(layout.get("kind", "")).startswith("frames") and not group[0].inner
        film = looks.shown(name) if over else None
        if not isinstance(film, Film):
            continue
        views = group if apart else [mean_of(group)]
        top = top_of_scale(views, scale=scale)
        shape = (*layout["shape"], 1, 1)[:3]
        every: list[NDArray[np.float64]] = [view.weights.reshape(view.steps, *shape) for view in views]
        columns = most_seen(np.concatenate([cells.sum((2, 3)) for cells in every]))
        for view, cells in zip(views, every, strict=True):
            known = looks.probabilities if len(looks.probabilities) == view.steps else []
            found.append(Reel(name, film.only(shape[0]), cells, view.outputs, known, top, columns, view.head))
    return found


def most_seen(shares: Float[np.ndarray, "outputs frames"]) -> list[int]:
    """The frames that any output looked at most, in the order of the film; of a short film all.

    >>> len(most_seen(np.eye(12)[[3, 9]])), len(most_seen(np.eye(12))), len(most_seen(np.full((1, 20), 0.05)))
    (8, 12, 16)
    """
    ranked = np.argsort(-shares.max(0), kind="stable")[:WIDEST_FILM]
    shown = np.cumsum(shares[:, ranked], axis=1) >= NEARLY * shares.sum(1, keepdims=True)
    enough = int(np.argmax(shown.all(0))) + 1 if shown.all(0).any() else WIDEST_FILM
    return sorted(ranked[: max(MOST, enough)].tolist())


# ---------------- When places that lie in time begin and end

_SECONDS = re.compile(r"(\d+(?:\.\d+)?) ?s")


def edges_of(names: Sequence[str], seconds: float) -> Float[np.ndarray, " edges"]:
    """Where places begin, and where the last one ends: by their names where these are seconds; otherwise all places
    last equally long.

    >>> edges_of(["0.00 s", "0.40 s"], 0.6).tolist(), edges_of(["1", "2"], 0.6).tolist()
    ([0.0, 0.4, 0.6], [0.0, 0.3, 0.6])
    """
    starts = seconds_of(names)
    if starts is None or starts[-1] >= seconds:
        return np.linspace(0, seconds, len(names) + 1)
    return np.append(starts, seconds)


def seconds_of(names: Sequence[str]) -> Float[np.ndarray, " names"] | None:
    """Names as seconds, where all of them are and none comes before the one it follows."""
    found = [_SECONDS.fullmatch(name) for name in names]
    if not all(found):
        return None
    times = np.array([float(match[1]) for match in found if match])
    return times if (np.diff(times) >= 0).all() else None


# ---------------- Looks at a sound


@dataclass(frozen=True)
class Hearing:
    """A sound, and for each output the weights of its places (steps, places), which lie between edges (in seconds);
    top: the weight of the strongest colour; head: which one, from 1, where heads are told apart."""

    name: str
    sound: Spectrogram
    weights: Float[np.ndarray, "steps places"]
    edges: Float[np.ndarray, " edges"]
    outputs: list[str]
    probabilities: list[float]
    top: float
    head: int | None = None


def hearings_of(looks: Looks, groups: list[list[Panel]], *, apart: bool = False, scale: str = "auto") -> list[Hearing]:
    """The hearings of those maps that lie over a sound. Heads are told apart where that is asked for; otherwise their
    mean is shown."""
    found: list[Hearing] = []
    for group in groups:
        name = group[0].name
        sound = (
            looks.shown(name) if looks.layouts.get(name, {}).get("kind") == "frames" and not group[0].inner else None
        )
        if not isinstance(sound, Spectrogram):
            continue
        views = group if apart else [mean_of(group)]
        top = top_of_scale(views, scale=scale)
        edges = edges_of(group[0].inputs, sound.seconds)
        for view in views:
            known = looks.probabilities if len(looks.probabilities) == view.steps else []
            found.append(Hearing(name, sound, view.weights, edges, view.outputs, known, top, view.head))
    return found


# ---------------- Scenes as boxes of a sheet

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


# ---------------- A reel as a box

FRAME = 1.12
"""Inches across a frame; high ones are narrower."""
_TALLEST = 1.0
_FILM_WORD = 1.15
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
    width: float = _FILM_WORD

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


# ---------------- A hearing as a box

WIDTH, SOUND = 8.6, 1.7
"""Inches of the axis of time, and of the spectrogram's height."""
STRIP, _GAP, _AXIS = 0.24, 0.1, 0.5
_SIZE, _SOUND_SMALL = 9.5, 8.0


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
                sheet.write(beyond, middle, said, size=_SOUND_SMALL, color=theme.muted, ha="left", va="center_baseline")

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
        axes.set_ylabel("kHz", color=theme.muted, fontsize=_SOUND_SMALL, labelpad=2)
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
        axes.set_xlabel("seconds", color=theme.muted, fontsize=_SOUND_SMALL, labelpad=2)
        self._dress(axes)

    def _dress(self, axes: Axes) -> None:
        theme = self.manner.theme
        axes.set_facecolor(theme.paper)
        axes.tick_params(labelsize=7.5, labelcolor=theme.muted, color=theme.muted, length=2.5, width=0.6, pad=2)
        for spine in axes.spines.values():
            spine.set_color(theme.line)
            spine.set_linewidth(0.6)


# ---------------- Maps that lie over something to be seen itself

Seen: TypeAlias = Scene | Reel | Hearing


def seen_of(looks: Looks, groups: list[list[Panel]], *, apart: bool = False, scale: str = "auto") -> list[Seen]:
    """All that can be seen of these maps, in their order; files are read once. apart: heads are told apart."""
    once = replace(looks, pictures={name: cache(shown) for name, shown in looks.pictures.items()})
    found: list[Seen] = []
    for group in groups:
        found += scenes_of(once, [group], apart=apart, scale=scale)
        found += reels_of(once, [group], apart=apart, scale=scale)
        found += hearings_of(once, [group], apart=apart, scale=scale)
    return found


def seen_box(seen: Seen, manner: Manner) -> Box:
    """One of them, to be laid on a sheet."""
    if isinstance(seen, Reel):
        return reel_box(seen, manner)
    if isinstance(seen, Hearing):
        return hearing_box(seen, manner)

    return scene_box(seen, manner)


def unseen(groups: list[list[Panel]], seen: list[Seen]) -> list[list[Panel]]:
    """The maps that nothing shows yet."""
    shown = {one.name for one in seen}
    return [group for group in groups if group[0].name not in shown]


def untold(groups: list[list[Panel]], seen: list[Seen]) -> list[list[Panel]]:
    """The maps whose numbers a page tells one by one: those that nothing shows, and those over time, where places are
    frames with a second for a name; cells of pictures are too many, and have no names."""
    in_time = {one.name for one in seen if isinstance(one, Hearing) or (isinstance(one, Reel) and one.whole)}
    shown = {one.name for one in seen} - in_time
    return [group for group in groups if group[0].name not in shown]
