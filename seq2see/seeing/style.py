"""Themes and colour scales: one style for all figures, legible in black and white."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import UserError, nearest

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap


ThemeName = Literal["light", "dark"]


@dataclass(frozen=True)
class Theme:
    """Colours of a figure.

    ramp: from weight 0 to the top of the scale. Its lightness is monotonic, so the order survives grey printing and
    colour blindness; it starts near the paper, so that places with little weight recede. series: colours of lines,
    distinct for colour-blind readers. glow: the light on regions of an image that were looked at.
    """

    name: ThemeName
    paper: str
    ink: str
    muted: str
    line: str
    ramp: tuple[str, ...]
    series: tuple[str, ...]
    glow: str = "#ff9d2e"

    def colormap(self) -> LinearSegmentedColormap:
        """The ramp as a matplotlib colormap."""
        return _colormap(self)

    def ink_on(self, share: float) -> str:
        """The text colour with the better contrast on the ramp's colour at a share of the scale (0 to 1)."""
        from matplotlib.colors import to_rgb

        return max((self.ink, self.paper), key=lambda text: contrast(to_rgb(text), self.colormap()(share)[:3]))


def rgb(colour: str) -> NDArray[np.float32]:
    """A hexadecimal colour as red, green and blue from 0 to 255.

    >>> rgb("#ff8000").tolist()
    [255.0, 128.0, 0.0]
    """
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.float32)


@lru_cache(maxsize=4)
def _colormap(theme: Theme) -> LinearSegmentedColormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(f"seq2see-{theme.name}", list(theme.ramp), N=256)


def luminance(rgb: tuple[float, ...]) -> float:
    """Relative luminance (0 black, 1 white) of an sRGB colour, as WCAG defines it."""
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in rgb[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Contrast ratio of two colours, from 1 (equal) to 21 (black on white)."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


THEMES: dict[str, Theme] = {
    "light": Theme(
        name="light",
        paper="#ffffff",
        ink="#17212b",
        muted="#5b6875",
        line="#d3dae1",
        ramp=("#f3f6f9", "#cfe2ee", "#93c4dc", "#4f9bc4", "#22699f", "#133f70", "#0a2244"),
        series=("#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#56b4e9"),
    ),
    "dark": Theme(
        name="dark",
        paper="#10151b",
        ink="#e9eef3",
        muted="#9aa7b4",
        line="#33404c",
        ramp=("#19212a", "#1c3f56", "#1f6680", "#2f9396", "#6cbf92", "#bde08e", "#fdf6b8"),
        series=("#56b4e9", "#ff9a57", "#3fcf9f", "#e39ad2", "#f0d060", "#a7c5ff"),
    ),
}


def theme_named(name: str) -> Theme:
    """The theme of that name."""
    if name not in THEMES:
        raise UserError(f"unknown theme '{name}'{nearest(name, THEMES)}; allowed: {', '.join(THEMES)}")
    return THEMES[name]


def strength(share: float) -> str:
    """CSS classes of a shaded element by its share of the scale; text on strong colours is inverted."""
    return f"shade{' s1' if share > 0.42 else ''}{' s2' if share > 0.57 else ''}"


SCALES = ("auto", "full")
_ROUND = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def round_top(largest: float, *, scale: str = "auto") -> float:
    """The weight with the strongest colour: 1, or if the largest weight is at most 0.5 the next round number above
    it.

    Over a hundred places weights stay below 0.1, and on a scale up to 1 such a map would be blank.

    >>> round_top(0.013), round_top(0.7), round_top(0.013, scale="full")
    (0.02, 1.0, 1.0)
    """
    if scale not in SCALES:
        raise UserError(f"unknown scale '{scale}'; allowed: {', '.join(SCALES)}")
    if scale == "full" or largest > _ROUND[-1]:
        return max(1.0, largest)
    return next(step for step in _ROUND if largest <= step)
