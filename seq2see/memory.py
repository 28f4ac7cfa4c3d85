"""Memory, the output of encoders: places that can be attended to. What comes after it does not know the modality."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

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


@dataclass(frozen=True)
class View:
    """Places before there is any input: their size and layout, and the larger places they lie inside, if any."""

    size: int
    layout: LayoutKind = "tokens"
    inside: View | None = None


@dataclass
class Copyable:
    """The symbols at the places of an input as ids of the output, for copying.

    ids: (batch, places); ids from the size of the output's vocabulary on are words of this input that the vocabulary
    lacks, in the order in which they first appear; words: those words, row by row, where they will be shown.
    """

    ids: Int[Tensor, "batch places"]
    words: list[list[str]] | None = None

    def select(self, rows: Int[Tensor, " chosen"]) -> Copyable:
        return Copyable(self.ids[rows], None if self.words is None else [self.words[i] for i in rows.tolist()])

    def to(self, device: torch.device | str) -> Copyable:
        return replace(self, ids=self.ids.to(device))

    def further(self, symbols: int) -> Int[Tensor, " batch"]:
        """How many words of each input an output vocabulary of that size lacks."""
        return (self.ids.amax(1) + 1 - symbols).clamp(min=0)


@dataclass
class Places:
    """The places of one input.

    states: (batch, places, size); mask: (batch, places), True where a place is real;
    tokens: the input's own symbols, row by row (to be shown, and to replace unknown words);
    parent: (batch, places), the index of the larger place (sentence) of each; inside: those larger places;
    copyable: their symbols as ids of the output, where a model may copy them.
    """

    states: Float[Tensor, "batch places size"]
    mask: Bool[Tensor, "batch places"]
    layout: Layout = field(default_factory=Layout)
    tokens: list[list[str]] | None = None
    parent: Int[Tensor, "batch places"] | None = None
    inside: Places | None = None
    copyable: Copyable | None = None

    def select(self, rows: Int[Tensor, " chosen"]) -> Places:
        """The same places for the chosen rows of the batch."""
        return replace(
            self,
            states=self.states[rows],
            mask=self.mask[rows],
            tokens=None if self.tokens is None else [self.tokens[i] for i in rows.tolist()],
            parent=None if self.parent is None else self.parent[rows],
            inside=None if self.inside is None else self.inside.select(rows),
            copyable=None if self.copyable is None else self.copyable.select(rows),
        )


@dataclass
class EncoderMap:
    """An encoder's own attention: weights (batch, rows, places), or (batch, heads, rows, places).

    rows, places: (batch, rows) and (batch, places), which of them are real; layout: how the places lie.
    """

    weights: Float[Tensor, "batch *heads rows places"]
    rows: Bool[Tensor, "batch rows"]
    places: Bool[Tensor, "batch places"]
    layout: Layout = field(default_factory=Layout)

    def select(self, rows: Int[Tensor, " chosen"]) -> EncoderMap:
        return replace(self, weights=self.weights[rows], rows=self.rows[rows], places=self.places[rows])


@dataclass
class Memory:
    """The encoded inputs of a batch, by input name (`input.name` for further places of an input).

    summaries: {name: (batch, size)}, the last state (both directions joined) of a sequence, the masked mean of a grid
    or set; maps: the encoders' own attention; rows: the size of the batch.
    """

    places: dict[str, Places] = field(default_factory=dict)
    summaries: dict[str, Float[Tensor, "batch size"]] = field(default_factory=dict)
    maps: dict[str, EncoderMap] = field(default_factory=dict)
    rows: int = -1

    def __post_init__(self) -> None:
        """Without inputs (a language model) `rows` has to be given; otherwise it follows from them."""
        if self.rows < 0:
            known = [places.mask.shape[0] for places in self.places.values()]
            known += [vector.shape[0] for vector in self.summaries.values()]
            self.rows = known[0] if known else 0

    def select(self, rows: Int[Tensor, " chosen"]) -> Memory:
        return Memory(
            places={name: places.select(rows) for name, places in self.places.items()},
            summaries={name: vector[rows] for name, vector in self.summaries.items()},
            maps={name: each.select(rows) for name, each in self.maps.items()},
            rows=rows.shape[0],
        )
