"""Looks at a sound: its spectrogram, and for each output how the weights lie over the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from seq2see.looks import Looks, Spectrogram
from seq2see.seeing.panels import Panel, mean_of, top_of_scale
from seq2see.seeing.spans import edges_of


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
