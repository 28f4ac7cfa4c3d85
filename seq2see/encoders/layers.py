"""Layers of encoders: recurrent and feed-forward layers, perceptrons, masked means, and rows of feature maps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from seq2see.attention import IntraAttention
from seq2see.cell_loops import GruLoop
from seq2see.cells import GRU, Cell, CellSettings, build_cell, flipped, last_real
from seq2see.deferred_gradients import DeferredCache, DeferredProduct
from seq2see.dropout import SequenceDropout, dropout
from seq2see.packed_weights import PackedWeights
from seq2see.symbols import Symbol, Symbols, prefixed, symbols_of


def masked_mean(
    states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
) -> Float[Tensor, "batch size"]:
    """The mean over real places; zeros where no place is real."""
    count = mask.sum(1, keepdim=True).clamp(min=1)
    return (states * mask[..., None]).sum(1) / count


MOST_GROUPS = 8
"""Groups of maps that are normalised together."""


def norm_groups(maps: int) -> int:
    """The number of groups for the group normalisation of so many maps: 8, or as many as divide them.

    >>> norm_groups(32), norm_groups(6)
    (8, 2)
    """
    return next(number for number in (MOST_GROUPS, 4, 2, 1) if maps % number == 0)


def join_pairs(
    states: Float[Tensor, "batch length size"], mask: Bool[Tensor, "batch length"]
) -> tuple[Float[Tensor, "batch half twice"], Bool[Tensor, "batch half"]]:
    """([x_1; x_2], [x_3; x_4], ..), real where the first of a pair is; a last single state is joined with zeros.

    Masked states count as zeros, so that a row does not depend on how much padding its batch has.

    >>> join_pairs(torch.arange(3.0).view(1, 3, 1), torch.ones(1, 3, dtype=torch.bool))[0]
    tensor([[[0., 1.],
             [2., 0.]]])
    """
    odd = states.shape[1] % 2
    states, mask = pad(states * mask[..., None], (0, 0, 0, odd)), pad(mask, (0, odd))
    return states.unflatten(1, (-1, 2)).flatten(2), mask[:, ::2]


class FeedForward(nn.Module):
    """W_2 relu(W_1 x + b_1) + b_2"""

    def __init__(self, size: int, inner: int):
        super().__init__()
        self.W_1 = nn.Linear(size, inner)
        self.W_2 = nn.Linear(inner, size)

    def forward(self, states: Float[Tensor, "*rows size"]) -> Float[Tensor, "*rows size"]:
        out: Tensor = self.W_2(torch.relu(self.W_1(states)))
        return out


class Perceptron(nn.ModuleList):
    """W_L relu(.. relu(W_1 x + b_1) ..) + b_L, with dropout on the output of each layer; without layers x itself.

    >>> Perceptron(3, 4, layers=2)(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(self, width: int, size: int, *, layers: int, dropout: float = 0.0):
        super().__init__(nn.Linear(size if number else width, size) for number in range(layers))
        self.dropout = dropout

    def forward(self, vectors: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows size"]:
        for number, layer in enumerate(cast("Iterable[nn.Linear]", self)):
            inner = torch.relu(vectors) if number else vectors
            vectors = dropout(layer(inner), self.dropout, self.training)
        return vectors

    def equation(self, x: str) -> str:
        """For `show`.

        >>> Perceptron(3, 4, layers=2).equation("x")
        'W_2 relu(W_1 x + b_1) + b_2'
        """
        for number in range(1, len(self) + 1):
            x = f"W_{number} {x if number == 1 else f'relu({x})'} + b_{number}"
        return x

    def parameter_symbols(self) -> Symbols:
        return numbered_symbols(self)


def numbered_symbols(layers: nn.ModuleList) -> Symbols:
    """W_1, b_1, W_2, .. of dense layers on top of each other."""
    names = {"weight": "W", "bias": "b"}
    return {
        f"{number}.{key}": Symbol(f"{name}_{number + 1}")
        for number in range(len(layers))
        for key, name in names.items()
    }


class SelfAttentiveCell(nn.Module):
    """h_j = cell(h_{j-1}, [x_j; c_j]), c_j = sum_{i<j} a_ji h_i; c_1 = 0.

    Real steps come first, also when reading backwards (each row is reversed by its own length), so that each attends to
    real ones only; padding is read too, as in a plain cell, and its outputs are masked.
    """

    def __init__(self, settings: CellSettings, width: int, *, score: str):
        super().__init__()
        self.cell = build_cell(settings, {"x": width, "c": settings.size})
        self.inward = IntraAttention(score, width=width, size=settings.size)

    def read(
        self, x: Float[Tensor, "batch steps width"], mask: Bool[Tensor, "batch steps"], *, reverse: bool = False
    ) -> tuple[Float[Tensor, "batch steps size"], Float[Tensor, "batch size"], Float[Tensor, "batch steps steps"]]:
        """The outputs of every step (zeros where masked), the last real one, and the attention weights of each step."""
        outputs, weights = self._loop(flipped(x, mask) if reverse else x)
        outputs, weights = outputs * mask[..., None], weights * mask[..., None]
        last = last_real(outputs, mask)
        if reverse:
            outputs = flipped(outputs, mask)
            weights = flipped(flipped(weights, mask).transpose(1, 2), mask).transpose(1, 2)
        return outputs, last, weights

    def _loop(
        self, x: Float[Tensor, "batch steps width"]
    ) -> tuple[Float[Tensor, "batch steps size"], Float[Tensor, "batch steps steps"]]:
        batch, steps = x.shape[:2]
        if not steps:
            return x.new_zeros(batch, 0, self.cell.size), x.new_zeros(batch, 0, 0)
        projected, queries = self.cell.project("x", x, bias=True).unbind(1), self.inward.project_inputs(x).unbind(1)
        cache, product = DeferredCache(steps), DeferredProduct(steps)
        recurrent = self.cell.recurrent_product(product, SequenceDropout())
        state, outputs = self.cell.zeros(x, batch), list[Tensor]()
        for number in range(steps):
            entering = projected[number]
            if number:
                context = self.inward(queries[number], state[0], cache, product=product)
                entering = entering + product(context, self.cell.W["c"], f"{id(self)}.W_c")
            output, *rest = self.cell(entering, state, product=recurrent)
            state = self.inward.append(output, cache), *rest
            outputs.append(state[0])
        return torch.stack(outputs, 1), cache.weights

    def parameter_symbols(self) -> Symbols:
        inward = prefixed("inward", symbols_of(self.inward), where="self-attention")
        return prefixed("cell", symbols_of(self.cell)) | inward


DIRECTIONS = ("forwards", "backwards")


@dataclass
class LayerOutput:
    """states: those of the top layer; last: its last state in each direction, joined; dropout is applied to both.

    mask: (batch, length), which states are real (fewer than of the input where layers join pairs);
    weights: {name: (batch, [heads,] length, length)}, the self-attention of each layer (`self-1`, from the bottom) and,
    where there are two, of each direction (`self-1-forwards`).
    """

    states: Float[Tensor, "batch length size"]
    last: Float[Tensor, "batch size"]
    mask: Bool[Tensor, "batch length"]
    weights: dict[str, Float[Tensor, "batch *heads length length"]] = field(default_factory=dict)


class RecurrentLayers(nn.ModuleList):
    """h_1 .. h_M from x_1 .. x_M; each layer has a cell that reads forwards and, if bidirectional, one backwards.

    self_attention: the score by which each cell attends to its earlier states, or `none`;
    halvings: this many layers, from the bottom, read pairs of neighbours, so that each halves the length.

    >>> layers = RecurrentLayers(CellSettings(size=4), 3, bidirectional=True)
    >>> read = layers(torch.zeros(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))
    >>> read.states.shape, read.last.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 8]))
    """

    def __init__(
        self,
        settings: CellSettings,
        width: int,
        *,
        bidirectional: bool,
        self_attention: str = "none",
        halvings: int = 0,
    ):
        super().__init__()
        self.dropout, self.variational, self.halvings = settings.dropout, settings.variational, halvings
        directions = 2 if bidirectional else 1
        self.size = settings.size * directions
        for number in range(settings.layers):
            width *= 2 if number < halvings else 1
            self.append(
                nn.ModuleList(
                    build_cell(settings, {"x": width})
                    if self_attention == "none"
                    else SelfAttentiveCell(settings, width, score=self_attention)
                    for _ in range(directions)
                )
            )
            width = self.size

    def forward(self, states: Float[Tensor, "batch steps width"], mask: Bool[Tensor, "batch steps"]) -> LayerOutput:
        last, weights = states.new_zeros(states.shape[0], self.size), dict[str, Tensor]()
        alike = SequenceDropout() if self.variational else None
        for number, readers in enumerate(self.readers(), start=1):
            if number <= self.halvings:
                states, mask = join_pairs(states, mask)
            runs = [_read(reader, states, mask, reverse=bool(i)) for i, reader in enumerate(readers)]
            states = torch.cat([outputs for outputs, _, _ in runs], dim=-1)
            states = dropout(states, self.dropout, self.training, alike=alike, name=f"layer {number}")
            last = torch.cat([final for _, final, _ in runs], dim=-1)
            for direction, (_, _, looked) in zip(DIRECTIONS, runs, strict=False):
                if looked is not None:
                    weights[f"self-{number}" + (f"-{direction}" if len(runs) > 1 else "")] = looked
        last = dropout(last, self.dropout, self.training, alike=alike, name=f"layer {len(self)}")
        return LayerOutput(states, last, mask, weights)

    def predict(
        self,
        ids: Int[Tensor, "batch steps"],
        mask: Bool[Tensor, "batch steps"],
        E: Float[Tensor, "symbols width"],
        packed: PackedWeights,
    ) -> LayerOutput | None:
        """What `forward` gives of the rows of E that belong to these symbols, faster; None where it has to go through
        the cells themselves."""
        layers = [[cell for cell in readers if type(cell) is GRU and cell.loops] for readers in self.readers()]
        if self.halvings or any(len(cells) < len(DIRECTIONS) for cells in layers):
            return None
        if not ids.shape[1] or E.dtype != torch.float32 or E.device.type != "cpu":
            return None
        steps, outputs = SortedSteps(mask), None
        for cells in layers:
            outputs = read_both_ways(cells, steps, packed, ids if outputs is None else steps.states(outputs), E)
        assert outputs is not None
        return LayerOutput(steps.states(outputs), steps.last(outputs), mask)

    def readers(self) -> list[list[Cell | SelfAttentiveCell]]:
        """Per layer the cell that reads forwards and, if bidirectional, the one that reads backwards."""
        return [list(cast("Iterable[Cell | SelfAttentiveCell]", directions)) for directions in self]

    @property
    def cell(self) -> Cell:
        """One of its cells, which all have the same equation."""
        first = self.readers()[0][0]
        return first.cell if isinstance(first, SelfAttentiveCell) else first

    @property
    def self_attention(self) -> IntraAttention | None:
        """The self-attention of one of its cells, if they have it."""
        first = self.readers()[0][0]
        return first.inward if isinstance(first, SelfAttentiveCell) else None

    def parameter_symbols(self) -> Symbols:
        """'W, layer 1 forwards'"""
        symbols: Symbols = {}
        for number, readers in enumerate(self.readers()):
            for side, (reader, direction) in enumerate(zip(readers, DIRECTIONS, strict=False)):
                for key, symbol in symbols_of(reader).items():
                    where = ", ".join(filter(None, (f"layer {number + 1} {direction}", symbol.where)))
                    symbols[f"{number}.{side}.{key}"] = Symbol(symbol.name, where)
        return symbols


def _read(
    reader: Cell | SelfAttentiveCell, states: Tensor, mask: Tensor, *, reverse: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The outputs, the last one, and the weights of self-attention, if the cell has it."""
    if isinstance(reader, SelfAttentiveCell):
        return reader.read(states, mask, reverse=reverse)
    return *reader.read({"x": states}, mask, reverse=reverse), None


# --- Predictions: all directions at once, with packed weights, and without padding


class SortedSteps:
    """The steps of two cells that read sequences from their first symbol on and from their last one, the longest
    sequences first.

    Tensors of these steps are (steps, directions, batch, ..). counts: of each step the rows that are long enough.
    """

    def __init__(self, mask: Bool[Tensor, "batch steps"]):
        self._batch = len(mask)
        lengths, steps = mask.sum(1), torch.arange(mask.shape[1])
        self._order = lengths.argsort(descending=True, stable=True)
        self._rank = self._order.argsort()
        self._ends = (lengths - 1).clamp(min=0)[:, None]
        self.counts: list[int] = [count for count in (lengths > steps[:, None]).sum(1).tolist() if count]
        backwards = torch.where(steps < lengths[:, None], self._ends - steps, steps)
        self._places = torch.stack([steps.expand_as(backwards), backwards])

    def arranged(
        self, vectors: Float[Tensor, "vectors size"], numbers: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "steps directions batch size"]:
        """The vectors that each step reads; numbers: of the vector of each place for the first direction, that for the
        second one follows it."""
        both = [numbers.gather(1, place)[self._order] + way for way, place in enumerate(self._places)]
        read = torch.stack(both).permute(2, 0, 1)
        return vectors.index_select(0, read.flatten()).view(*read.shape, -1)

    def states(self, outputs: Float[Tensor, "steps directions batch size"]) -> Float[Tensor, "batch length joined"]:
        """The outputs of both directions at each place, joined; zeros where there was no step."""
        return self._taken(outputs, self._places.permute(1, 2, 0))

    def last(self, outputs: Float[Tensor, "steps directions batch size"]) -> Float[Tensor, "batch joined"]:
        """The last outputs of both directions, joined; zeros of a row without symbols."""
        return self._taken(outputs, self._ends[..., None].expand(-1, -1, len(DIRECTIONS))).squeeze(1)

    def _taken(
        self, outputs: Float[Tensor, "steps directions batch size"], steps: Int[Tensor, "batch places directions"]
    ) -> Float[Tensor, "batch places joined"]:
        """Of each row the outputs of these steps."""
        ways = torch.arange(len(DIRECTIONS))
        numbers = (steps * len(DIRECTIONS) + ways) * self._batch + self._rank[:, None, None]
        return outputs.flatten(0, 2).index_select(0, numbers.flatten()).view(*steps.shape[:2], -1)


def read_both_ways(
    cells: Sequence[GRU],
    steps: SortedSteps,
    packed: PackedWeights,
    inputs: Int[Tensor, "batch length"] | Float[Tensor, "batch length below"],
    E: Float[Tensor, "symbols width"],
) -> Float[Tensor, "steps directions batch size"]:
    """The outputs of a GRU that reads forwards and of one that reads backwards.

    inputs: what they read, or the numbers of the rows of E that they read.
    """
    size, gates = cells[0].size, len(cells[0].U)
    weights, biases = [cell.W["x"] for cell in cells], list[Tensor](cell.b for cell in cells)
    table = None if inputs.is_floating_point() else packed.table(E, weights, biases)
    if table is None:
        vectors = inputs if inputs.is_floating_point() else E[inputs]
        table = packed.joint(vectors.flatten(0, 1), weights, torch.cat(biases))
        inputs = torch.arange(len(table)).view(inputs.shape[:2])
    projected = steps.arranged(table.view(-1, gates), inputs * len(DIRECTIONS))
    loop = GruLoop(torch.stack([cell.b_U for cell in cells])[:, None])
    U = packed.stacked([cell.U for cell in cells])
    outputs = projected.new_zeros(*projected.shape[:3], size)
    state = projected.new_zeros(*projected.shape[1:3], size)
    for step, count in enumerate(steps.counts):
        state = state[:, :count]
        (state,), _ = loop.forward(projected[step, :, :count], torch.bmm(state, U), (state,))
        outputs[step, :, :count] = state
    return outputs


def grid_mask(rows: int, columns: int, real: Int[Tensor, " batch"]) -> Bool[Tensor, "batch places"]:
    """Which cells of a map (rows, columns) are real; real: the number of real columns of each image."""
    line = torch.arange(columns, device=real.device) < real[:, None]
    return line.repeat(1, rows)


def flip_columns(
    maps: Float[Tensor, "batch size rows columns"], real: Int[Tensor, " batch"]
) -> Float[Tensor, "batch size rows columns"]:
    """Maps with their real columns in reverse order; padding stays at the end.

    >>> flip_columns(torch.tensor([[[[1.0, 2.0, 3.0, 0.0]]]]), torch.tensor([3])).flatten()
    tensor([3., 2., 1., 0.])
    """
    columns = torch.arange(maps.shape[-1], device=maps.device)
    order = torch.where(columns < real[:, None], real[:, None] - 1 - columns, columns)
    return maps.gather(3, order[:, None, None].expand(maps.shape))


def read_rows(
    layers: RecurrentLayers, states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"], rows: int
) -> Float[Tensor, "batch places joined"]:
    """Each row of places read by the same recurrent layers; zeros where masked."""
    lines, real = (part.unflatten(1, (rows, -1)).flatten(0, 1) for part in (states, mask))
    read: LayerOutput = layers(lines, real)
    outputs = read.states * real[..., None]
    joined: Tensor = outputs.unflatten(0, (-1, rows)).flatten(1, 2)
    return joined
