"""What a person can see: where a model looked, and what it said. Pure records, no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]
Pixels = NDArray[np.uint8]
"""A picture (height, width, channels), one channel or three, from 0 to 255."""

HEADS = 3
"""Dimensions of a map with heads."""

TICKS = (0.25, 0.5, 1, 2, 4, 8, 16)
"""Frequencies that are named beside a spectrogram, in kHz."""

CROWDED = 14
"""So many names of frequencies would stand close above each other."""


@dataclass(frozen=True)
class Video:
    """What a model saw of a video: frames (frames, height, width, channels) from 0 to 255, and the second at which each
    is shown."""

    frames: Pixels
    times: list[float]

    def sample(self, number: int) -> Video:
        """The film in so many frames, evenly chosen, where places stand for several."""
        if number == len(self.times):
            return self
        chosen = ((np.arange(number) + 0.5) * len(self.times) / number).astype(int)
        return Video(self.frames[chosen], [self.times[frame] for frame in chosen])


@dataclass(frozen=True)
class Spectrogram:
    """What a model heard of a sound: energies (frames, mels), logarithms of how loud each band is; hop: seconds from
    one frame to the next; middles: (mels,), the frequency in the middle of each band, in Hz."""

    energies: NDArray[np.float32]
    hop: float
    middles: NDArray[np.float32]

    @property
    def seconds(self) -> float:
        return len(self.energies) * self.hop

    def ticks(self) -> tuple[list[float], list[str]]:
        """(where in the bands, what to call it) of frequencies that lie among them.

        >>> Spectrogram(np.zeros((4, 3), np.float32), 0.01, np.array([500, 1000, 3000], np.float32)).ticks()
        ([0.5, 1.5, 2.0], ['0.5', '1', '2'])
        """
        inside = [tick for tick in TICKS if self.middles[0] <= 1000 * tick <= self.middles[-1]]
        found = np.interp([1000 * tick for tick in inside], self.middles, np.arange(len(self.middles)) + 0.5)
        places: list[float] = found.tolist()
        apart = [  # where low ones would run into each other, the highest of them is named
            number
            for number, place in enumerate(places)
            if number + 1 == len(places) or places[number + 1] - place > len(self.middles) / CROWDED
        ]
        return [places[number] for number in apart], [f"{inside[number]:g}" for number in apart]


Shown = Pixels | Video | Spectrogram
"""An input as a person can see it."""


@dataclass
class Looks:
    """Where the model looked: named maps of weights, each (steps, places), or (heads, steps, places).

    A decoder whose every layer looks shows the last one's looks under an input's name, the others as `name.layer-1`, ..

    inputs: for each map the symbols of the places;
    outputs: the symbols of the steps, `<eos>` included, one row for a label;
    layouts: for each map how its places lie ({"kind": "tokens", "shape": [5]}; "parts": how many of them lie in each
    of the larger places that hold them, words in sentences);
    chosen: for the maps of a hard choice the one place each step went by, whose weight is its probability;
    rows: what asks, for the maps in which it is not the output: where an encoder looked while it read, where a decoder
    looked at what it had written;
    reason: why there is no map, where there is none;
    probabilities: of the outputs, where they are known;
    pictures: of inputs that are pictures, videos or sounds, what shows them as the model was shown them (cut,
    stretched); called when there is something to draw, so that looks are as small for a picture as for a word;
    beside: texts that were read and not looked at (the question asked about a picture), by input, as they were given.
    """

    maps: dict[str, Weights] = field(default_factory=dict)
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    default: str | None = None
    reason: str | None = None
    rows: dict[str, list[str]] = field(default_factory=dict)
    chosen: dict[str, list[int]] = field(default_factory=dict)
    probabilities: list[float] = field(default_factory=list)
    pictures: dict[str, Callable[[], Shown | None]] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the default map."""
        if not self.maps:
            raise LookupError(self.reason or "this model has no attention: there is nothing to look at")
        return self.default if self.default is not None else next(iter(self.maps))

    @property
    def weights(self) -> Weights:
        """The default map, (steps, places); of heads their mean."""
        return flat(self.maps[self.name])

    @property
    def heads(self) -> Weights | None:
        """Each head of the default map, (heads, steps, places); None where there are none to tell apart."""
        weights = self.maps[self.name]
        return weights if weights.ndim == HEADS else None

    def onto_itself(self, name: str) -> bool:
        """Whether that map is of a sequence that looks at itself: what asks is what is looked at."""
        return name in self.rows and self.rows[name] == self.inputs.get(name)

    def shown(self, name: str) -> Shown | None:
        """What lies under the map of that name: a picture, a film, a spectrogram; None where nothing is to see."""
        found = self.pictures.get(name.partition(".")[0])
        return None if found is None else found()

    def picture(self, name: str) -> Pixels | None:
        """The picture under the map of that name; None where it lies over none."""
        found = self.shown(name)
        return found if isinstance(found, np.ndarray) else None

    def to_dict(self) -> dict[str, Any]:
        """As in `predict --json`: the default map at the top, every map by name under `maps` when there are several;
        `beside`, where there is any: the texts that were read with it."""
        if not self.maps:
            return {"inputs": [], "outputs": self.outputs, "weights": [], "layout": {}, "reason": self.reason}
        out: dict[str, Any] = {"inputs": [], "outputs": self.outputs} | self._map(self.name)
        if len(self.maps) > 1:
            out["maps"] = {name: self._map(name) for name in self.maps}
        return out | ({"beside": self.beside} if self.beside else {})

    def _map(self, name: str) -> dict[str, Any]:
        """One map; `weights` is (steps, places) always, `heads` beside it where there are some, and `rows`, what asks,
        where that is not the output."""
        weights, layout = self.maps[name], self.layouts.get(name, {})
        told: dict[str, Any] = {"inputs": self.inputs[name], "weights": _rounded(flat(weights)), "layout": layout}
        told |= {"heads": _rounded(weights)} if weights.ndim == HEADS else {}
        told |= {"chosen": self.chosen[name]} if name in self.chosen else {}
        return told | ({"rows": self.rows[name]} if name in self.rows else {})

    def save(self, path: str | Path, **options: Any) -> Path:
        """Draw to .png, .svg, .html, or write .json."""
        from seq2see.seeing import save  # late: seeing draws looks, looks does not need seeing

        return save(self, Path(path), **options)

    def plot(self, **options: Any) -> Any:
        """A matplotlib figure of the default map."""
        from seq2see.seeing import plot  # late, as above

        return plot(self, **options)

    def _repr_html_(self) -> str:
        """In a notebook: the page of `.html`, where one can point at outputs."""
        from seq2see.seeing import inline  # late, as above

        return inline(self)


def flat(weights: Weights) -> Weights:
    """A map without heads, (steps, places): their mean."""
    return weights.mean(0) if weights.ndim == HEADS else weights


def _rounded(weights: Weights) -> Any:
    return np.round(weights.astype(np.float64), 6).tolist()


@dataclass
class Token:
    """One output symbol, its probability, and the likeliest symbols at its step (itself included if among them)."""

    text: str
    probability: float
    runners_up: list[tuple[str, float]] = field(default_factory=list)


@dataclass
class Alternative:
    """A further hypothesis of an n-best list."""

    text: str
    score: float
    log_probability: float
    tokens: list[Token] = field(default_factory=list)
    looks: Looks | None = None


@dataclass
class Prediction:
    """What the model says of one input: a text, a label, a vector or a picture (`answer` gives whichever there is).

    image: (height, width), or (height, width, 3), from 0 to 255, or the path of the file it was written to.
    What is made of numbers has no tokens and no probability.
    reason: why there is no answer, where there is none (an empty input): the answer is empty, its score no number.
    given: what its probabilities are given beside the input (the places that a hard attention chose), where anything.
    """

    input: Any
    text: str | None = None
    label: str | None = None
    vector: list[float] | None = None
    image: NDArray[np.uint8] | str | None = None
    tokens: list[Token] = field(default_factory=list)
    log_probability: float = 0.0
    score: float = 0.0
    looks: Looks = field(default_factory=Looks)
    alternatives: list[Alternative] = field(default_factory=list)
    given: str = ""
    reason: str = ""

    @classmethod
    def blank(cls, given: Any, kind: str, reason: str) -> Prediction:
        """No answer; kind: of the output."""
        return cls(
            given,
            text="" if kind == "text" else None,
            label="" if kind == "label" else None,
            vector=[] if kind == "vector" else None,
            log_probability=float("nan"),
            score=float("nan"),
            looks=Looks(reason=reason),
            reason=reason,
        )

    @property
    def answer(self) -> Any:
        """The text, label, vector or picture, whichever there is."""
        every = (self.text, self.label, self.vector, self.image)
        return next((value for value in every if value is not None), None)

    @property
    def numeric(self) -> bool:
        """Whether the answer is made of numbers."""
        spoken = self.text is not None or self.label is not None
        return not spoken and (self.vector is not None or self.image is not None or bool(self.reason))

    def _repr_html_(self) -> str:
        """In a notebook: the answer, and where the model looked for it."""
        from seq2see.seeing import inline  # late: seeing draws looks, looks does not need seeing

        return inline(self.looks, answer="" if self.numeric else str(self.answer))

    def to_dict(self, *, looks: bool = False, runners_up: bool = False) -> dict[str, Any]:
        """One line of `predict --json`."""
        out: dict[str, Any] = {"input": self.input}
        for kind in ("text", "label", "vector"):
            if getattr(self, kind) is not None:
                out[kind] = getattr(self, kind)
        if self.image is not None:
            out["image"] = self.image if isinstance(self.image, str) else self.image.tolist()
        if self.reason:
            out |= ({"image": None} if self.answer is None else {}) | {"reason": self.reason}
        if self.numeric:
            return out | ({"looks": self.looks.to_dict()} if looks else {})
        out["log_probability"] = None if self.reason else self.log_probability
        out["score"] = None if self.reason else self.score
        if self.given:
            out["given"] = self.given
        out["tokens"] = [_token(token, runners_up) for token in self.tokens]
        out["alternatives"] = [
            {"text": other.text, "score": other.score, "log_probability": other.log_probability}
            for other in self.alternatives
        ]
        if looks:
            out["looks"] = self.looks.to_dict()
        return out


def _token(token: Token, runners_up: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"text": token.text, "probability": token.probability}
    if runners_up:
        out["runners_up"] = [{"text": text, "probability": probability} for text, probability in token.runners_up]
    return out
