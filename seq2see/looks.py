"""Results: where a model looked (Looks) and what it predicted (Prediction). Plain records without torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]
Pixels = NDArray[np.uint8]
"""An image (height, width, channels) with one channel or three, from 0 to 255."""

HEADS = 3
"""Number of dimensions of a map with heads."""


LayoutKind = Literal["tokens", "grid", "frames", "frames-grid", "sentences", "set", "vector"]


@dataclass(frozen=True)
class Layout:
    """How places lie in the input: `tokens` and `frames` in a line, `grid` in rows and columns, `set` in no order,
    `frames-grid` frame by frame, each a grid.

    shape: rows and columns of a grid, which all inputs share, after the frames of the longest input, if any; places in
    a line need none. leftward: columns are counted from the right of an image, for scripts written from right to left.
    """

    kind: LayoutKind = "tokens"
    shape: tuple[int, ...] = ()
    leftward: bool = False

    def to_dict(self, places: int) -> dict[str, Any]:
        """The layout of an input with so many real places, as in `predict --json`.

        A grid that is narrower than that of its batch has fewer columns, a shorter clip fewer frames.
        """
        shape = self.shape or (places,)
        if self.kind == "grid":
            shape = (self.shape[0], places // self.shape[0])
        if self.kind == "frames-grid":
            shape = (places // (self.shape[1] * self.shape[2]), *self.shape[1:])
        layout: dict[str, Any] = {"kind": self.kind, "shape": list(shape)}
        return layout | {"direction": "right-to-left"} if self.leftward else layout


class Drawable:
    """An input that can be drawn, as the model read it: the base class of one record for each kind of such inputs.

    view: "module:Class" of the `Overlay` that draws attention over it (`seq2see/seeing/overlays.py` says how to write
    one). The module is imported only to draw, so a record needs neither matplotlib nor `seq2see.seeing`.
    """

    view: ClassVar[str]


@dataclass(frozen=True)
class Picture(Drawable):
    """An image as the model read it: pixels (height, width, channels)."""

    view: ClassVar[str] = "seq2see.seeing.image:ImageOverlay"
    pixels: Pixels


@dataclass
class Looks:
    """Where the model looked: named maps of weights, each (steps, places) or (heads, steps, places).

    A decoder with attention in every layer has the last layer's map under the input's name, the others as
    `name.layer-1`, ...

    inputs: for each map the symbols of its places;
    outputs: the symbols of the steps, including `<eos>`; one row for a label;
    layouts: for each map how its places lie ({"kind": "tokens", "shape": [5]}; "parts": how many places lie in each
    larger place, such as words in sentences);
    chosen: for the maps of a hard choice the place selected at each step, whose weight is its probability;
    rows: the queries, for maps in which these are not the outputs: self-attention of an encoder or decoder;
    reason: why there is no map, if there is none;
    probabilities: of the outputs, if known;
    pictures: for inputs that can be drawn (images, videos, sounds, ..), functions that return them as the model read
    them; called only to draw, so that looks stay small;
    beside: texts that were read but not attended to (the question about an image), by input.
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
    pictures: dict[str, Callable[[], Drawable | None]] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the default map."""
        if not self.maps:
            raise LookupError(self.reason or "this model has no attention: it looks at no place")
        return self.default if self.default is not None else next(iter(self.maps))

    @property
    def weights(self) -> Weights:
        """The default map, (steps, places), averaged over heads."""
        return flat(self.maps[self.name])

    @property
    def heads(self) -> Weights | None:
        """The heads of the default map, (heads, steps, places); None if it has no heads."""
        weights = self.maps[self.name]
        return weights if weights.ndim == HEADS else None

    def onto_itself(self, name: str) -> bool:
        """Whether that map is self-attention: its queries are its places."""
        return name in self.rows and self.rows[name] == self.inputs.get(name)

    def drawable(self, name: str) -> Drawable | None:
        """The input under a map; None if it lies over nothing that can be drawn."""
        show = self.pictures.get(name.partition(".")[0])
        return None if show is None else show()

    def picture(self, name: str) -> Pixels | None:
        """The image under a map; None if it does not lie over one."""
        drawable = self.drawable(name)
        return drawable.pixels if isinstance(drawable, Picture) else None

    def to_dict(self) -> dict[str, Any]:
        """As in `predict --json`: the default map at the top level, all maps under `maps` if there are several,
        `beside` if there are other texts."""
        if not self.maps:
            return {"inputs": [], "outputs": self.outputs, "weights": [], "layout": {}, "reason": self.reason}
        out: dict[str, Any] = {"inputs": [], "outputs": self.outputs} | self._map(self.name)
        if len(self.maps) > 1:
            out["maps"] = {name: self._map(name) for name in self.maps}
        return out | ({"beside": self.beside} if self.beside else {})

    def _map(self, name: str) -> dict[str, Any]:
        """One map: `weights` is always (steps, places); `heads` and `rows` are added if there are any."""
        weights, layout = self.maps[name], self.layouts.get(name, {})
        record: dict[str, Any] = {"inputs": self.inputs[name], "weights": _rounded(flat(weights)), "layout": layout}
        record |= {"heads": _rounded(weights)} if weights.ndim == HEADS else {}
        record |= {"chosen": self.chosen[name]} if name in self.chosen else {}
        return record | ({"rows": self.rows[name]} if name in self.rows else {})

    def save(self, path: str | Path, **options: Any) -> Path:
        """Draw to .png, .svg, .pdf or .html, or write .json; options as in `seq2see.seeing.figure.save`."""
        from seq2see.seeing import save  # late: seeing imports looks

        return save(self, Path(path), **options)

    def plot(self, **options: Any) -> Any:
        """A matplotlib figure."""
        from seq2see.seeing import plot  # late, as above

        return plot(self, **options)

    def _repr_html_(self) -> str:
        """In a notebook: the interactive page."""
        from seq2see.seeing import inline  # late, as above

        return inline(self)


def flat(weights: Weights) -> Weights:
    """A map averaged over heads, (steps, places)."""
    return weights.mean(0) if weights.ndim == HEADS else weights


def _rounded(weights: Weights) -> Any:
    return np.round(weights.astype(np.float64), 6).tolist()


@dataclass
class Token:
    """One output symbol, its probability, and the most likely symbols at its step."""

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


NodeState = Literal["kept", "pruned", "finished", "stopped"]
"""What became of a continuation: it was continued; it was not among the best; it ended its output; or the search ended
while it could still have been continued."""


@dataclass
class TreeNode:
    """A continuation that a beam search considered.

    text: its symbol; parent: the number of the node that it continues, -1 at the first step; probability: of the
    symbol; log_probability: of the output up to it; output: where it ends one of the returned outputs, its rank from 0
    (the prediction itself), then the alternatives.
    """

    text: str
    parent: int
    probability: float
    log_probability: float
    state: NodeState
    output: int | None = None


@dataclass
class BeamTree:
    """All continuations that a beam search considered for an input, step by step; parents come before their children.

    left_out: nodes of later steps that are not listed, since there are too many.
    """

    nodes: list[TreeNode] = field(default_factory=list)
    left_out: int = 0

    def path(self, number: int) -> list[str]:
        """The symbols from the first step to that node: a `prefix` that continues from it."""
        symbols: list[str] = []
        while number >= 0:
            symbols.append(self.nodes[number].text)
            number = self.nodes[number].parent
        return symbols[::-1]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of the HTTP API; `output` only where a returned output ends."""
        nodes = [
            {name: value for name, value in vars(node).items() if name != "output" or value is not None}
            for node in self.nodes
        ]
        return {"nodes": nodes, "left_out": self.left_out}


@dataclass
class Prediction:
    """What the model predicts for one input: a text, a label, a vector or an image; `answer` returns whichever there
    is.

    vector: numbers, or rows of them; image: (height, width) or (height, width, 3), from 0 to 255, or the path of the
    file it was written to. Vectors and images have no tokens and no probability.
    reason: why there is no answer (an empty input): the answer is then empty and its score NaN.
    given: what the probabilities are conditioned on besides the input, such as the places chosen by hard attention.
    tree: the beam search that found it, if asked for (`predict(..., tree=True)`).
    """

    input: Any
    text: str | None = None
    label: str | None = None
    vector: list[float] | list[list[float]] | None = None
    image: NDArray[np.uint8] | str | None = None
    tokens: list[Token] = field(default_factory=list)
    log_probability: float = 0.0
    score: float = 0.0
    looks: Looks = field(default_factory=Looks)
    alternatives: list[Alternative] = field(default_factory=list)
    given: str = ""
    reason: str = ""
    tree: BeamTree | None = None

    @classmethod
    def blank(cls, value: Any, field: str, reason: str) -> Prediction:
        """An empty prediction; field: which of text, label, vector and image an answer has."""
        empty: dict[str, Any] = {"text": "", "label": "", "vector": []}
        return cls(
            value,
            **({field: empty[field]} if field in empty else {}),
            log_probability=float("nan"),
            score=float("nan"),
            looks=Looks(reason=reason),
            reason=reason,
        )

    def __repr__(self) -> str:
        """Prediction('le chat noir', score -0.0213); the fields have the rest."""
        if self.reason:
            return f"Prediction(blank: {self.reason})"
        if self.numeric:
            form = self.image if isinstance(self.image, str) else " x ".join(map(str, np.shape(self.answer)))
            return f"Prediction({'image' if self.vector is None else 'vector'}: {form})"
        return f"Prediction({self.answer!r}, score {self.score:.4f})"

    @property
    def answer(self) -> Any:
        """The text, label, vector or image, whichever there is."""
        answers = (self.text, self.label, self.vector, self.image)
        return next((value for value in answers if value is not None), None)

    @property
    def numeric(self) -> bool:
        """Whether the answer is a vector or an image."""
        textual = self.text is not None or self.label is not None
        return not textual and (self.vector is not None or self.image is not None or bool(self.reason))

    def _repr_html_(self) -> str:
        """In a notebook: the answer, and where the model looked."""
        from seq2see.seeing import inline  # late: seeing imports looks

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
        if self.tree is not None:
            out["tree"] = self.tree.to_dict()
        return out


def _token(token: Token, runners_up: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"text": token.text, "probability": token.probability}
    if runners_up:
        out["runners_up"] = [{"text": text, "probability": probability} for text, probability in token.runners_up]
    return out
