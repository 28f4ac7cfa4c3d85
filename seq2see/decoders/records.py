"""What a decoder prepares once, carries from step to step, and gives at each step. Never kept on a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.attention import Look, Prepared
from seq2see.cells import CellState
from seq2see.memory import Memory

T = TypeVar("T")


@dataclass
class Ready:
    """A memory made ready for decoding: keys per attention, first states, what enters every step.

    looks: {input name: keys, values, mask}; start: per layer the first cell state (batch, size);
    every: (batch, gates), the product of the summary that enters every step; memory: what all of it was made from;
    lower: the same as `looks` for each layer below the last one, where every layer of a decoder looks for itself;
    maps: whether somebody wants to see what it costs extra to tell: where a decoder looks at what it has written.
    """

    rows: int
    memory: Memory = field(default_factory=Memory)
    looks: dict[str, Prepared] = field(default_factory=dict)
    start: list[CellState] = field(default_factory=list)
    every: Float[Tensor, "batch gates"] | None = None
    lower: list[dict[str, Prepared]] = field(default_factory=list)
    maps: bool = False

    def by_layer(self) -> dict[str, Prepared]:
        """What is looked at, under the names of the looks of every layer."""
        return layered(self.looks, self.lower)

    def select(self, rows: Int[Tensor, " chosen"]) -> Ready:
        return Ready(
            rows=len(rows),
            memory=self.memory.select(rows),
            looks={name: prepared.select(rows) for name, prepared in self.looks.items()},
            start=[tuple(part[rows] for part in state) for state in self.start],
            every=None if self.every is None else self.every[rows],
            lower=[{name: prepared.select(rows) for name, prepared in one.items()} for one in self.lower],
            maps=self.maps,
        )


@dataclass
class State:
    """What a decoder carries. Rows are grouped: row r reads row r // width of the memory, which is never repeated.

    cells: per layer the cell's state (rows, size); caches: per layer what a self-attention keeps of earlier steps, rows
    first; context: (rows, size), the last one, where it enters the next step; past: {input name: (rows, places)}, what
    an attention remembers of its earlier looks.
    """

    rows: int
    cells: list[CellState] = field(default_factory=list)
    width: int = 1
    position: int = 0
    context: Float[Tensor, "rows context"] | None = None
    past: dict[str, Float[Tensor, "rows places"]] = field(default_factory=dict)
    caches: list[tuple[Tensor, ...]] = field(default_factory=list)

    def map(self, change: Callable[[Tensor], Tensor]) -> State:
        """Every tensor changed alike."""
        return replace(
            self,
            cells=[tuple(map(change, state)) for state in self.cells],
            context=None if self.context is None else change(self.context),
            past={name: change(remembered) for name, remembered in self.past.items()},
            caches=[tuple(map(change, cache)) for cache in self.caches],
        )

    def select(self, rows: Int[Tensor, " chosen"], width: int) -> State:
        """The chosen rows, `width` of them in a run for each row of the memory."""
        return replace(self.map(lambda part: part[rows]), width=width, rows=len(rows))

    def tensors(self) -> dict[str, Tensor]:
        """Everything that is carried, by name: for checkpoints and for runtimes that pass plain tensors."""
        found = {f"cells.{layer}.{i}": part for layer, state in enumerate(self.cells) for i, part in enumerate(state)}
        found |= {
            f"caches.{layer}.{i}": part for layer, cache in enumerate(self.caches) for i, part in enumerate(cache)
        }
        found |= {f"past.{name}": remembered for name, remembered in self.past.items()}
        return found if self.context is None else found | {"context": self.context}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], *, width: int = 1, position: int = 0) -> State:
        """What `tensors` took apart, put together."""
        layers: dict[str, dict[int, dict[int, Tensor]]] = {"cells": {}, "caches": {}}
        past = {}
        for name, tensor in tensors.items():
            kind, *rest = name.split(".")
            if kind in layers:
                layers[kind].setdefault(int(rest[0]), {})[int(rest[1])] = tensor
            elif kind == "past":
                past[".".join(rest)] = tensor
        cells, caches = (
            [tuple(parts[i] for i in sorted(parts)) for _, parts in sorted(found.items())] for found in layers.values()
        )
        rows = len(next(iter(tensors.values())))
        return cls(rows, cells, width, position, tensors.get("context"), past, caches)

    def detach(self) -> State:
        """The same values without their past: where truncated backpropagation cuts."""
        return self.map(Tensor.detach)


@dataclass
class Step:
    """The state after a step (or after a whole target), what the output layer sees, and where the decoder looked.

    features: (rows, size), or (rows, steps, size) for a whole target; looks: {name: a look of so many rows, steps};
    lower: where every layer looks for itself, the looks of those below the last one, from the bottom;
    inward: from the bottom layer to the top one where it looked at what has been read so far, (rows, heads, symbols);
    of single steps alone, and where `Ready.maps` asks for it.
    """

    state: State
    features: Float[Tensor, "rows *steps size"]
    looks: dict[str, Look] = field(default_factory=dict)
    lower: list[dict[str, Look]] = field(default_factory=list)
    inward: list[Float[Tensor, "rows heads symbols"]] = field(default_factory=list)

    def by_layer(self) -> dict[str, Look]:
        """All looks: the last layer's by the name of the input, those below it as `name.layer-1`, `name.layer-2`, .."""
        return layered(self.looks, self.lower)

    @classmethod
    def stacked(cls, steps: Sequence[Step]) -> Step:
        """Successive steps as one: (rows, steps, ...)."""
        looks = _stacked([step.looks for step in steps])
        lower = [_stacked(list(each)) for each in zip(*(step.lower for step in steps), strict=True)]
        return cls(steps[-1].state, stack([step.features for step in steps]), looks, lower)


def _stacked(looks: Sequence[Mapping[str, Look]]) -> dict[str, Look]:
    return {name: Look.stacked([one[name] for one in looks]) for name in looks[-1]}


def layered(last: Mapping[str, T], lower: Sequence[Mapping[str, T]]) -> dict[str, T]:
    """One mapping of all layers, the last one under plain names.

    >>> layered({"source": 3}, [{"source": 1}, {"source": 2}])
    {'source': 3, 'source.layer-1': 1, 'source.layer-2': 2}
    """
    below = {layer_name(name, i): one for i, layer in enumerate(lower) for name, one in layer.items()}
    return {**last, **below}


def layer_name(name: str, number: int) -> str:
    """What the looks of a layer below the last one (by its number, from 0) are called: people count from 1."""
    return f"{name}.layer-{number + 1}"


def top_output(states: list[CellState]) -> Tensor:
    """s_t: the output of the top layer."""
    return states[-1][0]


def stack(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts, dim=1)
