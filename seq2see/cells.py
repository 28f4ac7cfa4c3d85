"""Recurrent cells: s_t = cell(s_{t-1}, x_t), for a single step or a whole sequence.

The input x_t may come in named parts (embedding, context, summary): W x = sum over parts of W_part x_part. What does
not depend on the recurrent state can thus be multiplied once, outside the loop over time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import linear

from seq2see.cell_loops import run_sequence
from seq2see.deferred_gradients import DeferredProduct, Product, plain_product
from seq2see.dropout import SequenceDropout
from seq2see.errors import UserError
from seq2see.registry import Problem, Registry
from seq2see.settings.base import (
    FittedDropout,
    FittedSize,
    Layers,
    NameOf,
    NoSettings,
    Parts,
    Settings,
    Share,
    first_line,
    no_effect,
)
from seq2see.settings.plugins import arguments_of, part_registry
from seq2see.symbols import Symbol, Symbols

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

CellState = tuple[Tensor, ...]
"""What a cell carries from step to step: the output s_t first, then the rest (the LSTM's memory m_t)."""

KNOWN = ("inputs", "size")
"""Arguments of a cell's constructor that are known when it is built; the others are settings, beside `cell`."""
cells: Registry[type[Cell]] = part_registry("cell", lambda: Cell, methods=["gates", "forward"], known=KNOWN)


class CellSettings(Settings):
    """A recurrent network of one or more layers."""

    parts = {"cell": Parts(cells.settings)}
    cell: Annotated[str, NameOf(cells.settings)] = Field("gru", description="the recurrent cell")
    size: FittedSize = Field(256, description="size of a state (of each direction, if there are two)")
    layers: Layers = Field(1, description="number of layers")
    dropout: FittedDropout = Field(0.0, description="between layers and on the output of the last")
    variational: bool = Field(
        False,
        description="`dropout`, and that of the embedding, drops the same numbers at all steps of a sequence (locked "
        "dropout); false: different ones at each step",
    )
    recurrent_dropout: Share = Field(
        0.0, description="on s_{t-1} where U multiplies it, the same numbers at all steps of a sequence (variational)"
    )
    weight_drop: Share = Field(
        0.0, description="share of the numbers of U that are 0 for a batch (weight drop, DropConnect)"
    )

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        symbols = getattr(self, "embedding", None)
        if not self.dropout and not getattr(symbols, "dropout", 0.0):
            yield from no_effect(self, path, ["variational"], f"{path}.dropout is 0")


class Cell(nn.Module):
    """A recurrent cell: parameters, products with the input, and the loop over a sequence.

    A kind of cell sets `gates` (rows of W and U, in multiples of `size`) and writes `forward`; `states` says how many
    tensors it carries, `fused` may run a whole sequence faster. Further constructor arguments are settings
    of the same names. While training a share of s may be dropped before U multiplies it (`recurrent_dropout`), and a
    share of U (`weight_drop`): `recurrent_product` does both, whatever the kind.
    """

    gates: ClassVar[int]
    states: ClassVar[int] = 1
    recurrent_dropout: float = 0.0
    weight_drop: float = 0.0

    def __init__(self, inputs: Mapping[str, int], size: int):
        super().__init__()
        self.size = size
        self.inputs = tuple(inputs)
        rows = self.gates * size
        self.W = nn.ParameterDict({name: nn.Parameter(torch.empty(rows, width)) for name, width in inputs.items()})
        self.U = nn.Parameter(torch.empty(rows, size))
        self.b = nn.Parameter(torch.zeros(rows))
        total = sum(inputs.values())
        for weight in self.W.values():
            bound = (6.0 / (total + size)) ** 0.5
            nn.init.uniform_(weight, -bound, bound)
        for gate in self.U.data.split(size):
            nn.init.orthogonal_(gate)

    def project(
        self, part: str, x: Float[Tensor, "*rows width"], *, bias: bool = False
    ) -> Float[Tensor, "*rows gates"]:
        """W_part x; `bias` adds b, which belongs to one of the parts alone."""
        return linear(x, self.W[part], self.b if bias else None)

    def forward(
        self, projected: Float[Tensor, "rows gates"], state: CellState, *, product: Product = plain_product
    ) -> CellState:
        """One step: the next state from the projected input W x_t + b and the state before."""
        raise NotImplementedError

    def fused(self, inputs: Tensor, state: CellState) -> tuple[Tensor, CellState] | None:
        """A whole sequence (batch, steps, width) as one function; None where there is none for this cell."""
        return None

    def traced(self, inputs: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps size"]:
        """The outputs of a whole sequence as one operator of a graph that is exported (`_operators`)."""
        raise UserError(f"cell '{type(self).__name__}': a loop over the input's steps cannot be exported")

    def zeros(self, like: Tensor, rows: int) -> CellState:
        return tuple(like.new_zeros(rows, self.size) for _ in range(self.states))

    @property
    def loops(self) -> bool:
        """Whether it is a cell that `cell_loops` has."""
        return False

    @property
    def drops(self) -> bool:
        """Whether a pass drops something of the recurrence."""
        return self.training and bool(self.recurrent_dropout or self.weight_drop)

    def recurrent_product(self, product: Product, dropped: SequenceDropout) -> Product:
        """The product for `forward`: s, or r * s, without what this pass drops of it, with what it leaves of U."""
        if not self.drops:
            return product

        def multiply(x: Tensor, weight: Tensor, key: str) -> Tensor:
            left = dropped(x, self.recurrent_dropout, f"{id(self)}.s")
            return product(left, dropped.weight(weight, self.weight_drop, key), key)

        return multiply

    def dropped_parts(
        self, state: CellState, dropped: SequenceDropout
    ) -> tuple[Float[Tensor, "gates size"], Float[Tensor, "rows size"] | None]:
        """U, and what s is multiplied with (None: nothing), as `recurrent_product` has them; for `cell_loops`."""
        if not self.drops:
            return self.U, None
        U = dropped.weight(self.U, self.weight_drop, f"{id(self)}.U")
        return U, dropped.mask(state[0], self.recurrent_dropout, f"{id(self)}.s")

    def run(
        self,
        parts: Mapping[str, Float[Tensor, "batch steps _"]],
        state: CellState | None = None,
        dropped: SequenceDropout | None = None,
    ) -> tuple[Float[Tensor, "batch steps size"], CellState]:
        """The outputs of every step and the state after the last; state: the one before the first, None: zeros;
        dropped: what the pass that it is part of drops, None: it is a pass by itself."""
        inputs = self._inputs(parts)
        state = state if state is not None else self.zeros(inputs, inputs.shape[0])
        if not inputs.shape[1]:
            return inputs.new_zeros(inputs.shape[0], 0, self.size), state
        dropped = SequenceDropout() if dropped is None else dropped
        if self.drops and self.loops:
            U, mask = self.dropped_parts(state, dropped)
            return run_sequence(linear(inputs, self._joined(), self.b), U, getattr(self, "b_U", None), state, mask)
        done = None if self.drops else self.fused(inputs, state)
        return done if done is not None else self._loop(inputs, state, dropped)

    def read(
        self,
        parts: Mapping[str, Float[Tensor, "batch steps _"]],
        mask: Bool[Tensor, "batch steps"],
        *,
        reverse: bool = False,
    ) -> tuple[Float[Tensor, "batch steps size"], Float[Tensor, "batch size"]]:
        """The outputs of every step (zeros where masked) and the last real one (zeros where there is none).

        reverse: read from right to left. Real steps come first and do not depend on what follows, so padding is read
        too and its outputs are masked: torch's kernel is several times faster on rows of one length than on packed ones
        (benchmarks/long_inputs.py).
        """
        inputs = self._inputs(parts)
        inputs = flipped(inputs, mask) if reverse else inputs
        outputs = self.traced(inputs) if torch.compiler.is_exporting() else self.run({"all": inputs})[0]
        outputs = outputs * mask[..., None]
        last = last_real(outputs, mask)
        return flipped(outputs, mask) if reverse else outputs, last

    def _inputs(self, parts: Mapping[str, Tensor]) -> Tensor:
        """All parts concatenated, in the order of the weights."""
        return next(iter(parts.values())) if len(parts) == 1 else torch.cat([parts[name] for name in self.inputs], -1)

    def _loop(self, inputs: Tensor, state: CellState, dropped: SequenceDropout) -> tuple[Tensor, CellState]:
        projected = linear(inputs, self._joined(), self.b)
        product = self.recurrent_product(DeferredProduct(inputs.shape[1]), dropped)
        outputs = []
        for step in projected.unbind(1):
            state = self(step, state, product=product)
            outputs.append(state[0])
        return torch.stack(outputs, 1), state

    def equation(self) -> str:
        """s_t from s_{t-1} and the input x_t, for `show`: by default the first line of the class's docstring."""
        return first_line(type(self)) or f"s_t = {type(self).__name__}(s_{{t-1}}, x_t)"

    def parameter_symbols(self) -> Symbols:
        """W (or W_c, of a named part of the input), U, b."""
        return {key: Symbol(_symbol(key)) for key, _ in self.named_parameters()}

    def _joined(self) -> Tensor:
        weights = [self.W[name] for name in self.inputs]
        return weights[0] if len(weights) == 1 else torch.cat(weights, dim=1)


def _symbol(key: str) -> str:
    """'W' of the parameter W.x, 'W_c' of W.c."""
    return "W" if key == "W.x" else key.replace(".", "_")


def flipped(x: Float[Tensor, "batch steps _"], mask: Bool[Tensor, "batch steps"]) -> Float[Tensor, "batch steps _"]:
    """Each row's real steps in reverse order; padding stays at the end."""
    steps = torch.arange(x.shape[1], device=x.device)
    lengths = mask.sum(1, keepdim=True)
    order = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return x.gather(1, order[..., None].expand_as(x))


def last_real(
    outputs: Float[Tensor, "batch steps size"], mask: Bool[Tensor, "batch steps"]
) -> Float[Tensor, "batch size"]:
    """Each row's last real step (real steps come first); of a row without real steps the first one.

    outputs are zeros where masked, so that a row without real steps gives zeros, as does one without any steps.
    """
    batch, steps, size = outputs.shape
    if not steps:
        return outputs.new_zeros(batch, size)
    where = (mask.sum(1) - 1).clamp(min=0)[:, None, None].expand(-1, 1, size)
    return outputs.gather(1, where).squeeze(1)


def _run_kernel(name: str, inputs: Tensor, state: Any, weights: list[Tensor]) -> tuple[Tensor, CellState] | None:
    """One of torch's own recurrent kernels (what `nn.GRU` and the others call) over rows of one length.

    None where this version of torch does not offer it by that name: then the cell's own loop computes the same.
    """
    kernel: Any = getattr(torch, name, None)
    if kernel is None:
        return None
    learning = torch.is_grad_enabled()  # cuDNN keeps what its backward pass needs only if told so
    outputs, *last = kernel(inputs, state, weights, True, 1, 0.0, learning, False, True)
    return outputs, tuple(part[0] for part in last)


def _operators() -> None:
    """Define seq2see::rnn, gru and lstm: recurrences from a state of zeros, as operators that torch does not look into.

    Without them a trace would hold every step of one sequence and fit no other length. They have shapes and no
    numbers: an exporter translates them.
    """
    arguments = {
        "rnn": "Tensor W, Tensor U, Tensor b, bool logistic",
        "gru": "Tensor W, Tensor U, Tensor b, Tensor b_U, bool before, bool logistic",
        "lstm": "Tensor W, Tensor U, Tensor b",
    }
    for name, rest in arguments.items():
        torch.library.define(f"seq2see::{name}", f"(Tensor x, {rest}) -> Tensor")
        torch.library.register_fake(f"seq2see::{name}", _traced_shape)


def _traced_shape(x: Tensor, W: Tensor, U: Tensor, *rest: object) -> Tensor:
    return x.new_empty(x.shape[0], x.shape[1], U.shape[1])


_operators()


class PlainCellSettings(Settings):
    """A plain recurrent cell."""

    activation: Literal["tanh", "logistic"] = Field("tanh", description="of the state")


@cells.register("rnn")
class Plain(Cell):
    """s_t = f(W x_t + U s_{t-1} + b), f = tanh or logistic."""

    Settings = PlainCellSettings
    gates = 1

    def __init__(self, inputs: Mapping[str, int], size: int, *, activation: str = "tanh"):
        super().__init__(inputs, size)
        self.logistic = activation == "logistic"

    def forward(
        self, projected: Float[Tensor, "rows gates"], state: CellState, *, product: Product = plain_product
    ) -> CellState:
        total = projected + product(state[0], self.U, f"{id(self)}.U")
        return (torch.sigmoid(total) if self.logistic else torch.tanh(total),)

    def traced(self, inputs: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps size"]:
        outputs: Tensor = torch.ops.seq2see.rnn(inputs, self._joined(), self.U, self.b, self.logistic)
        return outputs

    def equation(self) -> str:
        return f"s_t = {'logistic' if self.logistic else 'tanh'}(W x_t + U s_{{t-1}} + b)"

    def fused(self, inputs: Tensor, state: CellState) -> tuple[Tensor, CellState] | None:
        if self.logistic:
            return None
        weights = [self._joined(), self.U, self.b, torch.zeros_like(self.b)]
        return _run_kernel("rnn_tanh", inputs, state[0][None].contiguous(), weights)


class GruSettings(Settings):
    """A GRU."""

    activation: Literal["tanh", "logistic"] = Field("tanh", description="of the candidate")
    reset: Literal["after", "before"] = Field(
        "after", description="reset gate applied after the product (torch's form) or before it (the textbook's)"
    )


@cells.register("gru")
class GRU(Cell):
    """r, z = logistic(W x + U s); n = f(W_n x + r * (U_n s + b_U)) or, reset before: f(W_n x + U_n (r * s));
    s_t = (1 - z) * n + z * s_{t-1}."""

    Settings = GruSettings
    gates = 3

    def __init__(self, inputs: Mapping[str, int], size: int, *, activation: str = "tanh", reset: str = "after"):
        super().__init__(inputs, size)
        self.logistic = activation == "logistic"
        self.before = reset == "before"
        if not self.before:
            self.b_U = nn.Parameter(torch.zeros(size))

    def forward(
        self, projected: Float[Tensor, "rows gates"], state: CellState, *, product: Product = plain_product
    ) -> CellState:
        (s,) = state
        size = self.size
        if self.before:
            gates = projected[:, : 2 * size] + product(s, self.U[: 2 * size], f"{id(self)}.U_rz")
            r, z = torch.sigmoid(gates).chunk(2, 1)
            inner = projected[:, 2 * size :] + product(r * s, self.U[2 * size :], f"{id(self)}.U_n")
        else:
            recurrent = product(s, self.U, f"{id(self)}.U")
            r, z = torch.sigmoid(projected[:, : 2 * size] + recurrent[:, : 2 * size]).chunk(2, 1)
            inner = torch.addcmul(projected[:, 2 * size :], r, recurrent[:, 2 * size :] + self.b_U)
        n = torch.sigmoid(inner) if self.logistic else torch.tanh(inner)
        return (n + z * (s - n),)

    def traced(self, inputs: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps size"]:
        bias = torch.zeros_like(self.b[: self.size]) if self.before else self.b_U
        outputs: Tensor = torch.ops.seq2see.gru(
            inputs, self._joined(), self.U, self.b, bias, self.before, self.logistic
        )
        return outputs

    def equation(self) -> str:
        inner = "U_n (r * s_{t-1})" if self.before else "r * (U_n s_{t-1} + b_U)"
        activation = "logistic" if self.logistic else "tanh"
        return (
            f"r, z = logistic(W x_t + U s_{{t-1}} + b);  n = {activation}(W_n x_t + {inner} + b_n);  "
            "s_t = (1 - z) * n + z * s_{t-1}"
        )

    @property
    def loops(self) -> bool:
        """Whether it is torch's form of a GRU."""
        return not self.before and not self.logistic

    def fused(self, inputs: Tensor, state: CellState) -> tuple[Tensor, CellState] | None:
        if not self.loops:
            return None
        if torch.is_grad_enabled() and inputs.device.type == "cpu":
            return run_sequence(linear(inputs, self._joined(), self.b), self.U, self.b_U, state)
        bias = torch.cat([torch.zeros_like(self.b[: 2 * self.size]), self.b_U])
        weights = [self._joined(), self.U, self.b, bias]
        return _run_kernel("gru", inputs, state[0][None].contiguous(), weights)


@cells.register("lstm")
class LSTM(Cell):
    """i, f, g, o = W x + U s + b; m_t = logistic(f) * m_{t-1} + logistic(i) * tanh(g); s_t = logistic(o) tanh(m_t)."""

    Settings = NoSettings
    gates = 4
    states = 2

    def __init__(self, inputs: Mapping[str, int], size: int):
        super().__init__(inputs, size)
        self.b.data[size : 2 * size] = 1.0  # remember at first: the forget gate starts open

    def forward(
        self, projected: Float[Tensor, "rows gates"], state: CellState, *, product: Product = plain_product
    ) -> CellState:
        s, m = state
        i, f, g, o = (projected + product(s, self.U, f"{id(self)}.U")).chunk(4, 1)
        m = torch.sigmoid(f) * m + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(m), m

    @property
    def loops(self) -> bool:
        return True

    def traced(self, inputs: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps size"]:
        outputs: Tensor = torch.ops.seq2see.lstm(inputs, self._joined(), self.U, self.b)
        return outputs

    def equation(self) -> str:
        return (
            "i, f, g, o = W x_t + U s_{t-1} + b;  m_t = logistic(f) * m_{t-1} + logistic(i) * tanh(g);  "
            "s_t = logistic(o) * tanh(m_t)"
        )

    def fused(self, inputs: Tensor, state: CellState) -> tuple[Tensor, CellState] | None:
        weights = [self._joined(), self.U, self.b, torch.zeros_like(self.b)]
        start = (state[0][None].contiguous(), state[1][None].contiguous())
        return _run_kernel("lstm", inputs, start, weights)


def build_cell(settings: CellSettings, inputs: Mapping[str, int]) -> Cell:
    """The cell of the settings' kind, with those of their options that its constructor takes."""
    kind = cells[settings.cell]
    options = {argument.name for argument in arguments_of(kind)}.difference(KNOWN)
    cell = kind(inputs, settings.size, **{name: getattr(settings, name) for name in options})
    cell.recurrent_dropout, cell.weight_drop = settings.recurrent_dropout, settings.weight_drop
    return cell
