"""Looks at a picture: which maps lie over one, and the picture lit where it was looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from seq2see.looks import Looks, Pixels
from seq2see.seeing.panels import Panel, mean_of, top_of_scale
from seq2see.seeing.style import Theme, rgb

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
