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
"""Frames shown of a film, or as many more as every output's look needs."""
WIDEST = 16
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
    ranked = np.argsort(-shares.max(0), kind="stable")[:WIDEST]
    shown = np.cumsum(shares[:, ranked], axis=1) >= NEARLY * shares.sum(1, keepdims=True)
    enough = int(np.argmax(shown.all(0))) + 1 if shown.all(0).any() else WIDEST
    return sorted(ranked[: max(MOST, enough)].tolist())
