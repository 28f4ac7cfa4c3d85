"""Memory, the output of encoders: places that can be attended to. What comes after it does not know the modality."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.looks import Layout, LayoutKind


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


def largest(numbers: Int[Tensor, "*_"]) -> int:
    """The largest of whole numbers from 0 on, as a size; it may be unknown while a model is traced for export.

    >>> largest(torch.tensor([2, 5]))
    5
    """
    size: int = numbers.max().item()  # type: ignore[assignment] # int() would ask for its value
    torch._check(size >= 0)
    return size


def repeat_rows(rows: Tensor, times: int) -> Tensor:
    """Every row so many times, in a run: (rows, ...) -> (rows * times, ...).

    It is `repeat_interleave` with a number of times that may be unknown while a model is traced for export.

    >>> repeat_rows(torch.tensor([4, 5]), 2)
    tensor([4, 4, 5, 5])
    """
    if times == 1:
        return rows
    return rows[:, None].expand(rows.shape[0], times, *rows.shape[1:]).flatten(0, 1)


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
