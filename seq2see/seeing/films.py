"""Looks at a video: for each output the frames that were looked at, lit by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from seq2see.looks import Film, Looks, Pixels
from seq2see.seeing.panels import Panel, mean_of, top_of_scale
from seq2see.seeing.scenes import Scene, in_colour
from seq2see.seeing.style import Theme

MOST = 8
"""Frames shown of each output's."""
LEAST = 0.005
"""What has less is not shown: its weight would be told as 0 %."""


@dataclass(frozen=True)
class Reel:
    """A film, and for each output the weights of the cells of its frames (steps, frames, rows, columns), one cell where
    whole frames are looked at; top: the weight of a cell that is fully lit."""

    name: str
    film: Film
    weights: Float[np.ndarray, "steps frames rows columns"]
    outputs: list[str]
    probabilities: list[float]
    top: float
    head: int | None = None

    @property
    def whole(self) -> bool:
        """Whether frames are looked at as they are, not region by region."""
        return self.weights.shape[2:] == (1, 1)

    @property
    def shares(self) -> Float[np.ndarray, "steps frames"]:
        """How much of each output's look went to each frame."""
        return np.asarray(self.weights.sum((2, 3)))

    def chosen(self, step: int, most: int = MOST) -> list[int]:
        """The frames that an output looked at most, in the order of the film; of a short film all, one below the other
        for every output."""
        shares = self.shares[step]
        if len(shares) <= most:
            return list(range(len(shares)))
        ranked = np.argsort(-shares, kind="stable")[:most]
        return sorted(frame for frame in ranked.tolist() if shares[frame] >= LEAST or frame == ranked[0])

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
        for view in views:
            cells: NDArray[np.float64] = view.weights.reshape(view.steps, *shape)
            known = looks.probabilities if len(looks.probabilities) == view.steps else []
            found.append(Reel(name, film.only(shape[0]), cells, view.outputs, known, top, view.head))
    return found
