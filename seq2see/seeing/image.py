"""Attention over images: one copy for each output, lit where it looked."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from seq2see.looks import Looks, Picture, Pixels
from seq2see.seeing.labels import shorten, visible
from seq2see.seeing.overlays import Overlay, frame_axes, known_probabilities, percent
from seq2see.seeing.panels import Panel, mean_panel, top_of_scale
from seq2see.seeing.sheet import Box, Column, Sheet, Style, flow
from seq2see.seeing.style import THEMES, Theme, rgb, theme_named

GHOST = 0.3
"""Opacity of an image where it is not looked at; the rest is the colour of the paper."""

GLOW = 0.3
"""Share of the light's colour where the image is looked at: white walls and black dogs must show that they are lit."""

LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""Weights of red, green and blue in perceived brightness."""

GAMMA = 0.55
"""Light is weight to this power: broad looks, whose every cell has little weight, stay visible beside narrow ones."""

JPEG_QUALITY = 88


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
    layouts: ClassVar[tuple[str, ...]] = ("grid", "frames")  # frames side by side are a grid of one row

    @classmethod
    def of(
        cls, drawable: Picture, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> list[ImageOverlay]:
        """Overlays of a map over an image. Heads are also separate where there is a single output."""
        layout = looks.layouts[group[0].name]
        panels = group if separate_heads or group[0].steps == 1 else [mean_panel(group)]
        top = top_of_scale(panels, scale=scale)
        overlays = []
        for panel in panels:
            cells = panel.weights.reshape(panel.steps, -1, layout["shape"][-1])
            if layout.get("direction") == "right-to-left":  # the first column is the rightmost
                cells = cells[..., ::-1]
            image, known = in_colour(drawable.pixels), known_probabilities(looks, panel)
            overlays.append(cls(panel.name, image, cells, panel.outputs, known, top, panel.head))
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
        width = min(TILE_HEIGHT * wide / high, MAX_TILE_WIDTH, style.room)
        if style.room < SHEET_WIDTH and wide <= 2 * high:  # on paper, three side by side
            width = min(width, (style.room - 2 * TILE_GAP) / 3)
        height = width * high / wide
        caption = "as the model sees it" if self.head is None else f"head {self.head}"
        tiles: list[Box] = [Tile(self.image, style, width, height, caption, original=True)]
        tiles += [
            Tile(self.lit(step, style.theme), style, width, height, visible(word), note=self.probability(step))
            for step, word in enumerate(self.outputs)
        ]
        return Column(
            [flow(tiles, width=max(min(SHEET_WIDTH, style.room), width), gap=TILE_GAP), LightBar(self.top, style)],
            gap=0.22,
        )

    def section(self, *, theme: str | None, named: bool) -> str:
        """The image, then one lit copy for each output, as elements of a page."""
        themes = [theme_named(theme)] if theme is not None else list(THEMES.values())
        head = "" if self.head is None else f" · head {self.head}"
        title = f'<h2 dir="auto">{escape(self.name)}{head}</h2>\n' if named or head else ""
        original = f'<img alt="the image" src="{_jpeg_url(self.image)}">'
        whole = _figure("as the model sees it", "", original, kind=" whole")
        looks = "\n".join(self._tile(step, themes) for step in range(len(self.outputs)))
        return f"""<section aria-label="{escape(self.name)}">
{title}<p class="caption">lit where it looked; full light is a weight of {self.top:g}</p>
<div class="tiles">
{whole}
{looks}
</div>
</section>"""

    def _tile(self, step: int, themes: list[Theme]) -> str:
        word = escape(visible(self.outputs[step]))
        alone = len(themes) == 1
        pictures = "".join(
            f'<img{"" if alone else f" class={theme.name}"} alt="where it looked for {word}" '
            f'src="{_jpeg_url(self.lit(step, theme))}">'
            for theme in themes
        )
        return _figure(word, self.probability(step), pictures)


def _figure(word: str, note: str, pictures: str, *, kind: str = "") -> str:
    caption = f"<figcaption><b><bdi>{word}</bdi></b> <span>{note}</span></figcaption>"
    return f'<figure class="tile{kind}" tabindex="0">{caption}{pictures}</figure>'


def _jpeg_url(picture: Pixels) -> str:
    """An image as a data URL."""
    file = BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=JPEG_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


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
TILE_GAP = 0.2
WORD_SIZE, NOTE_SIZE = 11.5, 8.5
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
        size, ink = (NOTE_SIZE, theme.muted) if self.original else (WORD_SIZE, theme.ink)
        note = labeller.text(self.note)
        available = self.width - (note.measure(NOTE_SIZE)[0] + 0.1 if self.note else 0)
        label = shorten(labeller, self.word, size, available, bold=not self.original)
        sheet.write(x, base, label, size=size, bold=not self.original, color=ink, ha="left", va="baseline")
        if self.note:
            sheet.write(x + self.width, base, note, size=NOTE_SIZE, color=theme.muted, ha="right", va="baseline")
        axes = sheet.axes(x, y + _CAPTION, self.width, self.image_height)
        axes.imshow(self.image, aspect="auto", interpolation="antialiased")
        axes.set_gid("picture" if self.original else f"look {self.word}")
        axes.set_xticks([])
        axes.set_yticks([])
        frame_axes(axes, theme)


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
        frame_axes(axes, theme)
        label = self.style.labeller.text(f"attention weight of a {self.unit}")
        sheet.write(x + length + 0.14, y + 0.06, label, size=8.0, color=theme.muted, ha="left", va="center")
