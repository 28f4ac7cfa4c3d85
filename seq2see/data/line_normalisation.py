"""Lines of text brought to one form: baseline level, ink black on white, letters of one size. Nothing here needs torch.

A hand writes uphill, with a pale pen, small in a tall line; a network of few rows of pixels sees little of it then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from PIL import Image

MEASURED_HEIGHT = 64
"""Rows of the reduced image that everything is measured on."""

STEEPEST = 0.25
"""Pixels down for each pixel across, the steepest line that is levelled."""

DEVIATIONS = 4.0
"""Standard deviations of the ink's rows kept above and below their mean: ascenders and descenders lie within."""

FAINTEST = 12.0
"""Levels of grey (of 255) between ink and paper below which an image counts as blank."""

MOST_POINTS = 4000
"""Pixels of ink that the slope and the height of the letters are measured on."""


@dataclass(frozen=True)
class LineMeasures:
    """Where the letters of a line are, in pixels, and how dark.

    A letter's row at column x is that at `middle` plus slope * (x - middle); the rows from `top` to `top + height` are
    kept at `middle`. paper: level of the paper; contrast: levels from there to the ink, negative if the ink is darker.
    """

    slope: float
    middle: float
    top: float
    height: int
    paper: float
    contrast: float


def normalise_line(picture: Image.Image) -> Image.Image:
    """The image of a line of text (mode L) levelled, cropped to its letters' height and with black ink on white paper;
    a blank image is returned as it is."""
    line = measure_line(picture)
    if line is None:
        return picture
    levels = 255 * (1 - ((np.arange(256) - line.paper) / line.contrast).clip(0, 1))
    contrasted = picture.point(levels.round().astype(int).tolist())
    moved = (1, 0, 0, line.slope, 1, line.top - line.slope * line.middle)
    size = (picture.width, line.height)
    return contrasted.transform(size, Image.Transform.AFFINE, moved, Image.Resampling.BILINEAR, fillcolor=255)


def measure_line(picture: Image.Image) -> LineMeasures | None:
    """What `normalise_line` takes out of an image (mode L); None of one that is blank.

    - Paper is the median level; ink is what differs from it to the side where more does (light ink on dark paper too).
    - The slope is that of the steepest profile: ink summed along lines of this slope has the largest sum of squares
      (Vinciarelli and Luettin 2001). Columns are shifted, not rotated.
    - Rows are kept within `DEVIATIONS` standard deviations of the ink about its mean, so that small writing fills
      the height (moment normalisation, Kozielski et al. 2013).
    """
    if picture.width < 2 or picture.height < 2:
        return None
    factor = max(picture.height // MEASURED_HEIGHT, 1)
    small = np.asarray(picture.reduce(factor), dtype=np.float32)
    paper = float(np.median(small))
    ink = small - paper
    side = -1.0 if np.square(ink.clip(max=0)).sum() >= np.square(ink.clip(min=0)).sum() else 1.0
    ink *= side
    darkest = float(np.percentile(ink, 99.5))
    if darkest < FAINTEST:
        darkest = float(ink.max())
    if darkest < FAINTEST:
        return None
    darkest = float(np.percentile(ink[ink > 0.3 * darkest], 80))
    down, across = np.nonzero(ink > 0.4 * darkest)
    kept = np.arange(0, len(down), max(len(down) // MOST_POINTS, 1))
    rows, columns = down[kept].astype(np.float32), across[kept].astype(np.float32)
    weights = ink[down[kept], across[kept]].clip(max=darkest)

    middle = float(columns.mean())
    slope = measure_slope(rows, columns - middle, weights)
    mean, deviation = trimmed_moments(rows - slope * (columns - middle), weights)
    half = min(max(DEVIATIONS * deviation, small.shape[0] / 16), small.shape[0] / 1.5)
    height = max(round(2 * factor * half), 1)
    return LineMeasures(slope, factor * middle, factor * (mean - half), height, paper, side * darkest)


def measure_slope(
    rows: Float[NDArray[np.float32], " points"],
    columns: Float[NDArray[np.float32], " points"],
    weights: Float[NDArray[np.float32], " points"],
) -> float:
    """Pixels down for each pixel across, at most STEEPEST either way: a coarse search, then two finer ones around the
    best of it."""
    best = 0.0
    for step, reach in ((STEEPEST / 8, 8), (STEEPEST / 32, 4), (STEEPEST / 128, 4)):
        slopes = best + step * np.arange(-reach, reach + 1)
        best = float(max(slopes, key=lambda slope: _sharpness(rows - slope * columns, weights)))
    return min(max(best, -STEEPEST), STEEPEST)


def _sharpness(rows: NDArray[np.float32], weights: NDArray[np.float32]) -> float:
    """Sum of squares of the ink in each row."""
    whole = np.rint(rows).astype(np.int64)
    profile = np.bincount(whole - whole.min(), weights=weights)
    return float(np.square(profile).sum())


def trimmed_moments(rows: NDArray[np.float32], weights: NDArray[np.float32]) -> tuple[float, float]:
    """Mean and standard deviation of rows, without what lies more than 2.5 deviations away (parts of other lines)."""
    near = np.ones(len(rows), dtype=bool)
    for _ in range(3):
        mean = float(np.average(rows[near], weights=weights[near]))
        deviation = float(np.sqrt(np.average(np.square(rows[near] - mean), weights=weights[near])))
        near = np.abs(rows - mean) <= max(2.5 * deviation, 1)
    mean = float(np.average(rows[near], weights=weights[near]))
    return mean, float(np.sqrt(np.average(np.square(rows[near] - mean), weights=weights[near])))
