"""Records of a decoder: what it prepares once, carries from step to step, and returns at each step.

They are never stored on a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear

from seq2see.attention import HeadNumbers, Look, LookEquations, Prepared
from seq2see.cells import CellState
from seq2see.deferred_gradients import Product, plain_product
from seq2see.dropout import SequenceDropout
from seq2see.looks import Layout
from seq2see.memory import Copyable, Memory, Places
from seq2see.packed_weights import PackedWeights

T = TypeVar("T")


@dataclass
class Ready:
    """A memory prepared for decoding.

    looks: {input name: prepared places} of the last layer's attention; lower: the same for each layer below it, where
    every layer has its own; start: per layer the first cell state (batch, size); every: (batch, gates), the product of
    the summary that enters every step; memory: what was prepared; maps: whether a step also returns self-attention over
    the symbols so far, which costs extra; packed: weights packed for predictions; dropped: what is dropped alike at all
    steps while training.
    """

    rows: int
    memory: Memory = field(default_factory=Memory)
    looks: dict[str, Prepared] = field(default_factory=dict)
    start: list[CellState] = field(default_factory=list)
    every: Float[Tensor, "batch gates"] | None = None
    lower: list[dict[str, Prepared]] = field(default_factory=list)
    maps: bool = False
    packed: PackedWeights | None = None
    dropped: SequenceDropout = field(default_factory=SequenceDropout)

    @property
    def product(self) -> Product:
        """Multiplies with weights at a single step."""
        return plain_product if self.packed is None else self.packed

    def linear(
        self, x: Float[Tensor, "*rows width"], weight: Float[Tensor, "out width"], bias: Tensor | None = None
    ) -> Float[Tensor, "*rows out"]:
        """x weight' + bias, at a single step."""
        return linear(x, weight, bias) if self.packed is None else self.packed.linear(x, weight, bias)

    def with_packed(self, packed: PackedWeights | None) -> Ready:
        """The same with packed weights, for all products of a step."""
        if packed is None:
            return self
        looks, *lower = (
            {name: replace(prepared, product=packed) for name, prepared in layer.items()}
            for layer in (self.looks, *self.lower)
        )
        return replace(self, packed=packed, looks=looks, lower=lower)

    def by_layer(self) -> dict[str, Prepared]:
        """The prepared places of every layer, by the names of its looks."""
        return layered(self.looks, self.lower)

    def tensors(self) -> dict[str, Tensor]:
        """What a step needs as plain tensors by name, batch first: for runtimes that have no other records."""
        tensors = {
            f"looks/{name}/{part}": tensor
            for name, prepared in self.by_layer().items()
            for part, tensor in prepared.tensors().items()
        }
        tensors |= {
            f"start/{layer}/{i}": part for layer, state in enumerate(self.start) for i, part in enumerate(state)
        }
        copyable = {name: places.copyable for name, places in self.memory.places.items()}
        tensors |= {f"copyable/{name}": ids.ids for name, ids in copyable.items() if ids is not None}
        return tensors if self.every is None else tensors | {"every": self.every}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], layouts: Mapping[str, Layout], *, rows: int) -> Ready:
        """The inverse of `tensors`; layouts: of the places of every layer's looks, by their names."""
        groups: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition("/")
            groups.setdefault(kind, {})[rest] = tensor
        looks, lower = dict[str, Prepared](), dict[int, dict[str, Prepared]]()
        for name, layout in layouts.items():
            own = {
                key.removeprefix(f"{name}/"): part
                for key, part in groups["looks"].items()
                if key.startswith(f"{name}/")
            }
            place, layer, number = name.rpartition(".layer-")
            where = lower.setdefault(int(number), {}) if layer else looks
            where[place if layer else name] = Prepared.from_tensors(own, layout)
        start: dict[str, list[Tensor]] = {}
        for key, part in groups.get("start", {}).items():
            start.setdefault(key.partition("/")[0], []).append(part)
        return cls(
            rows,
            Memory({name: _copied(ids) for name, ids in groups.get("copyable", {}).items()}, rows=rows),
            looks,
            [tuple(parts) for parts in start.values()],
            tensors.get("every"),
            [lower[number] for number in sorted(lower)],
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> Ready:
        return Ready(
            rows=rows.shape[0],
            memory=self.memory.select(rows),
            looks={name: prepared.select(rows) for name, prepared in self.looks.items()},
            start=[tuple(part[rows] for part in state) for state in self.start],
            every=None if self.every is None else self.every[rows],
            lower=[{name: prepared.select(rows) for name, prepared in layer.items()} for layer in self.lower],
            maps=self.maps,
            packed=self.packed,
        )


def _copied(ids: Int[Tensor, "batch places"]) -> Places:
    """Places of which nothing is known but what can be copied from them."""
    return Places(
        ids.new_empty(*ids.shape, 0, dtype=torch.float32),
        torch.ones_like(ids, dtype=torch.bool),
        copyable=Copyable(ids),
    )


@dataclass
class State:
    """What a decoder carries from step to step. Row r belongs to row r // width of the memory, which is never repeated.

    cells: per layer the state of its cell (rows, size); caches: per layer the keys and values of earlier steps, rows
    first; position: symbols read so far (a tensor while a step is traced for export); context: (rows, size), the last
    one, for input feeding; past: {input name: (rows, places)}, the sum of earlier looks, for scores that remember them.
    """

    rows: int
    cells: list[CellState] = field(default_factory=list)
    width: int = 1
    position: int = 0
    context: Float[Tensor, "rows context"] | None = None
    past: dict[str, Float[Tensor, "rows places"]] = field(default_factory=dict)
    caches: list[tuple[Tensor, ...]] = field(default_factory=list)

    def map(self, change: Callable[[Tensor], Tensor]) -> State:
        """The same state with every tensor changed alike."""
        return replace(
            self,
            cells=[tuple(map(change, state)) for state in self.cells],
            context=None if self.context is None else change(self.context),
            past={name: change(past) for name, past in self.past.items()},
            caches=[tuple(map(change, cache)) for cache in self.caches],
        )

    def select(self, rows: Int[Tensor, " chosen"], width: int) -> State:
        """The chosen rows; each row of the memory has `width` of them, one after the other."""
        return replace(self.map(lambda part: part[rows]), width=width, rows=rows.shape[0])

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name: for checkpoints, and for runtimes that pass plain tensors."""
        tensors = {f"cells.{layer}.{i}": part for layer, state in enumerate(self.cells) for i, part in enumerate(state)}
        tensors |= {
            f"caches.{layer}.{i}": part for layer, cache in enumerate(self.caches) for i, part in enumerate(cache)
        }
        tensors |= {f"past.{name}": past for name, past in self.past.items()}
        return tensors if self.context is None else tensors | {"context": self.context}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], *, width: int = 1, position: int = 0) -> State:
        """The state of these tensors: the inverse of `tensors`."""
        layers: dict[str, dict[int, dict[int, Tensor]]] = {"cells": {}, "caches": {}}
        past = {}
        for name, tensor in tensors.items():
            kind, *rest = name.split(".")
            if kind in layers:
                layers[kind].setdefault(int(rest[0]), {})[int(rest[1])] = tensor
            elif kind == "past":
                past[".".join(rest)] = tensor
        cells, caches = (
            [tuple(parts[i] for i in sorted(parts)) for _, parts in sorted(layer.items())] for layer in layers.values()
        )
        rows = next(iter(tensors.values())).shape[0]
        return cls(rows, cells, width, position, tensors.get("context"), past, caches)

    def detach(self) -> State:
        """The same values without gradients, for truncated backpropagation through time."""
        return self.map(Tensor.detach)


@dataclass
class LayerStep:
    """What happened in one layer at a single step, for `explain`.

    state: (rows, size), its output; query: (rows, size), what its attention to the inputs was computed from, if any;
    self_attention: of each head, over the symbols read so far (one query), where `Ready.maps` asks for it.
    """

    state: Float[Tensor, "rows size"]
    query: Float[Tensor, "rows query"] | None = None
    self_attention: HeadNumbers | None = None


@dataclass
class Step:
    """The result of a step, or of all steps of a target.

    state: after the step; features: (rows, size), or (rows, steps, size) of a whole target, what the output layer sees;
    looks: {input name: look}, rows and steps first; lower: where every layer has its own attention, the looks of the
    layers below the last one, from the bottom; self_weights: per layer, from the bottom, the weights of self-attention
    over the symbols read so far (rows, heads, symbols), of single steps with `Ready.maps`; layers: what happened in
    each layer, of single steps; output: (rows, size), s_t of a single step, where the features are more than that.
    """

    state: State
    features: Float[Tensor, "rows *steps size"]
    looks: dict[str, Look] = field(default_factory=dict)
    lower: list[dict[str, Look]] = field(default_factory=list)
    self_weights: list[Float[Tensor, "rows heads symbols"]] = field(default_factory=list)
    layers: list[LayerStep] = field(default_factory=list)
    output: Float[Tensor, "rows _"] | None = None

    def by_layer(self) -> dict[str, Look]:
        """All looks: those of the last layer by input name, those below it as `name.layer-1`, `name.layer-2`, .."""
        return layered(self.looks, self.lower)

    @classmethod
    def stacked(cls, steps: Sequence[Step]) -> Step:
        """Successive steps as one: (rows, steps, ...)."""
        looks = _stacked([step.looks for step in steps])
        lower = [_stacked(list(each)) for each in zip(*(step.lower for step in steps), strict=True)]
        return cls(steps[-1].state, stack([step.features for step in steps]), looks, lower)


def _stacked(looks: Sequence[Mapping[str, Look]]) -> dict[str, Look]:
    return {name: Look.stacked([step[name] for step in looks]) for name in looks[-1]}


def layered(last: Mapping[str, T], lower: Sequence[Mapping[str, T]]) -> dict[str, T]:
    """The mappings of all layers as one; the last layer has the plain names.

    >>> layered({"source": 3}, [{"source": 1}, {"source": 2}])
    {'source': 3, 'source.layer-1': 1, 'source.layer-2': 2}
    """
    below = {layer_name(name, i): value for i, layer in enumerate(lower) for name, value in layer.items()}
    return {**last, **below}


def layer_name(name: str, number: int) -> str:
    """The name of the looks of a layer below the last one; number: from 0, the name counts from 1."""
    return f"{name}.layer-{number + 1}"


def top_output(states: list[CellState]) -> Tensor:
    """s_t, the output of the top layer."""
    return states[-1][0]


def stack(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts, dim=1)


@dataclass
class DecoderEquations:
    """How a decoder works, in the notation of the specification: for `show` and `explain`.

    headline: its kind and size; embedding: of the symbols it reads; matching: how its inputs are compared with each
    other before; start: the first state; every: what enters every step; query: what attention is computed from;
    attention: of its inputs, with further remarks in `notes`; step: how a step goes, line by line; cell, cell_name: of
    a recurrent decoder; features: what the output layer sees; from_start: the one state of a decoder of one step is the
    first state, changed by `step`.
    """

    headline: str
    start: str
    features: str
    embedding: str = ""
    every: str = ""
    query: str = ""
    attention: LookEquations | None = None
    notes: list[str] = field(default_factory=list)
    step: list[str] = field(default_factory=list)
    cell: str = ""
    cell_name: str = ""
    from_start: bool = False
    matching: list[str] = field(default_factory=list)
