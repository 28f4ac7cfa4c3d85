"""What an encoder hands over: places that can be looked at. Nothing right of here knows the modality."""

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

    shape: rows and columns of a grid, which all inputs share (before them the frames, of the longest input); what lies
    in a line is as long as its mask says.
    leftward: columns are counted from the right of a picture, as a script that runs that way is read.
    """

    kind: LayoutKind = "tokens"
    shape: tuple[int, ...] = ()
    leftward: bool = False

    def to_dict(self, places: int) -> dict[str, Any]:
        """For an input of so many real places, as in `predict --json`; a narrower grid than its batch's has fewer
        columns, a shorter clip fewer frames."""
        shape = self.shape or (places,)
        if self.kind == "grid":
            shape = (self.shape[0], places // self.shape[0])
        if self.kind == "frames-grid":
            shape = (places // (self.shape[1] * self.shape[2]), *self.shape[1:])
        told: dict[str, Any] = {"kind": self.kind, "shape": list(shape)}
        return told | {"direction": "right-to-left"} if self.leftward else told


@dataclass(frozen=True)
class View:
    """What can be looked at, before there is any input: places of so many numbers each, which lie like this, and the
    larger places they lie inside, if any."""

    size: int
    layout: LayoutKind = "tokens"
    inside: View | None = None


@dataclass
class Copyable:
    """What stands at the places of an input, as the output would write it.

    ids: (batch, places), below the number of the output's symbols where its vocabulary has the word; from there on the
    words of this input that it lacks are counted, in the order in which they first appear;
    words: those words, row by row, where somebody will read them.
    """

    ids: Int[Tensor, "batch places"]
    words: list[list[str]] | None = None

    def select(self, rows: Int[Tensor, " chosen"]) -> Copyable:
        return Copyable(self.ids[rows], None if self.words is None else [self.words[i] for i in rows.tolist()])

    def to(self, device: torch.device | str) -> Copyable:
        return replace(self, ids=self.ids.to(device))

    def further(self, symbols: int) -> Int[Tensor, " batch"]:
        """How many words of each input lie beyond an output vocabulary of so many symbols."""
        return (self.ids.amax(1) + 1 - symbols).clamp(min=0)


@dataclass
class Places:
    """Places of one input.

    states: (batch, places, size); mask: (batch, places), True where a place is real;
    tokens: the input's own symbols, row by row (to be shown, and for unknown words);
    parent: (batch, places), for each place the index of the larger place (sentence) that holds it; inside: those larger
    places; copyable: what the output would write for its symbols, where a model may copy them.
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
    """Where an encoder itself looked, while it read: weights (batch, rows, places), or (batch, heads, rows, places).

    mask: (batch, rows), (batch, places): which rows and which places are real; layout: how the places lie.
    """

    weights: Float[Tensor, "batch *heads rows places"]
    rows: Bool[Tensor, "batch rows"]
    places: Bool[Tensor, "batch places"]
    layout: Layout = field(default_factory=Layout)

    def select(self, rows: Int[Tensor, " chosen"]) -> EncoderMap:
        return replace(self, weights=self.weights[rows], rows=self.rows[rows], places=self.places[rows])


@dataclass
class Memory:
    """All that is known of a batch of inputs, by input name (`input.name` for further places of an input).

    summaries: {name: (batch, size)}, the last state (both directions joined) of a sequence, the masked mean of a grid
    or set; maps: where encoders looked while they read.
    """

    places: dict[str, Places] = field(default_factory=dict)
    summaries: dict[str, Float[Tensor, "batch size"]] = field(default_factory=dict)
    maps: dict[str, EncoderMap] = field(default_factory=dict)
    rows: int = -1

    def __post_init__(self) -> None:
        """Without inputs (a language model) the number of rows has to be given; otherwise it follows from them."""
        if self.rows < 0:
            known = [len(places.mask) for places in self.places.values()] + [len(v) for v in self.summaries.values()]
            self.rows = known[0] if known else 0

    def select(self, rows: Int[Tensor, " chosen"]) -> Memory:
        return Memory(
            places={name: places.select(rows) for name, places in self.places.items()},
            summaries={name: vector[rows] for name, vector in self.summaries.items()},
            maps={name: one.select(rows) for name, one in self.maps.items()},
            rows=len(rows),
        )
