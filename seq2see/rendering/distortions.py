"""What paper, pen and camera do to a line: each by a random amount, up to a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFilter

from seq2see.errors import UserError

LARGEST = {"rotation": 20.0, "shear": 45.0, "blur": 10.0, "noise": 128.0, "ink": 1.0, "paper": 1.0, "elastic": 1.0}
WHITE = 255


@dataclass(frozen=True)
class Distortions:
    """Limits of each; 0: none of it.

    rotation, shear: degrees to either side; blur: pixels of its radius; noise: deviation of each pixel, of 255;
    ink: how much thicker or thinner strokes become, 1 being a pixel at each edge; paper: how dark and uneven what is
    written on may be, and how pale the ink; elastic: how far letters wander, in shares of a twentieth of the height.
    """

    rotation: float = 1.0
    shear: float = 5.0
    blur: float = 0.8
    noise: float = 6.0
    ink: float = 0.5
    paper: float = 0.2
    elastic: float = 0.3

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not 0 <= value <= LARGEST[one.name]:
                raise UserError(f"--{one.name} {value:g}: allowed: from 0 to {LARGEST[one.name]:g}")

    def of(self, line: Image.Image, random: np.random.Generator) -> Image.Image:
        """The line, black on white, distorted; a little larger, lest anything be cut off."""
        edge = max(2, round(line.height * 0.08))
        line = _framed(line, edge)
        if self.shear:
            line = _slanted(line, random.uniform(-self.shear, self.shear))
        if self.rotation:
            angle = random.uniform(-self.rotation, self.rotation)
            line = line.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=WHITE)
        if self.elastic:
            line = _wandering(line, self.elastic * line.height / 20, random)
        if self.ink:
            line = _weighted(line, random.uniform(-self.ink, self.ink))
        line = _framed(_trimmed(line), edge)
        if self.blur:
            line = line.filter(ImageFilter.GaussianBlur(random.uniform(0, self.blur)))
        return _on_paper(line, self.paper, self.noise, random)


def _framed(line: Image.Image, edge: int) -> Image.Image:
    wider = Image.new("L", (line.width + 2 * edge, line.height + 2 * edge), WHITE)
    wider.paste(line, (edge, edge))
    return wider


def _trimmed(line: Image.Image) -> Image.Image:
    box = ImageChops.invert(line).point([0 if value < 32 else value for value in range(256)]).getbbox()
    return line if box is None else line.crop(box)


def _slanted(line: Image.Image, degrees: float) -> Image.Image:
    shift = math.tan(math.radians(degrees))
    wider = math.ceil(abs(shift) * line.height)
    matrix = (1, shift, -wider if shift > 0 else 0, 0, 1, 0)
    size = (line.width + wider, line.height)
    return line.transform(size, Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor=WHITE)


def _wandering(line: Image.Image, far: float, random: np.random.Generator) -> Image.Image:
    """Every point is moved by up to `far` pixels, its neighbours by nearly the same."""
    height, width = line.height, line.width
    knots = (max(width // max(height, 1), 1) + 2, 3)
    moved = [_smooth(random.uniform(-far, far, knots[::-1]), line.size) for _ in range(2)]
    down, across = np.mgrid[0:height, 0:width]
    x, y = (across + moved[0]).clip(0, width - 1.001), (down + moved[1]).clip(0, height - 1.001)
    left, top = x.astype(int), y.astype(int)
    dx, dy = x - left, y - top
    right, below = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    pixels = np.asarray(line, dtype=np.float32)
    upper = pixels[top, left] * (1 - dx) + pixels[top, right] * dx
    lower = pixels[below, left] * (1 - dx) + pixels[below, right] * dx
    return Image.fromarray((upper * (1 - dy) + lower * dy).round().clip(0, 255).astype(np.uint8))


def _smooth(knots: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float32]:
    """Values between a few given ones, for every pixel of a picture of that (width, height)."""
    given = Image.fromarray(knots.astype(np.float32))
    return np.asarray(given.resize(size, Image.Resampling.BICUBIC), dtype=np.float32)


def _weighted(line: Image.Image, by: float) -> Image.Image:
    """Strokes thicker (above 0) or thinner."""
    other = line.filter(ImageFilter.MinFilter(3) if by > 0 else ImageFilter.MaxFilter(3))
    share = by if by > 0 else -by / 2  # thin strokes would be lost
    return Image.blend(line, other, share)


def _on_paper(line: Image.Image, paper: float, noise: float, random: np.random.Generator) -> Image.Image:
    pixels = np.asarray(line, dtype=np.float64)
    if paper:
        light = WHITE * (1 - random.uniform(0, paper) / 2)
        dark = WHITE * random.uniform(0, paper) / 2
        uneven = _smooth(random.uniform(-1, 1, (2, 4)) * paper * 20, line.size)
        pixels = dark + pixels / WHITE * (light - dark) + uneven
    if noise:
        pixels = pixels + random.normal(0, random.uniform(0, noise), pixels.shape)
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))
