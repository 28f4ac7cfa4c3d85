"""Every cell against its equations in NumPy, against torch's own layers, and its fused run against its loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seq2see.cell_loops import run_sequence
from seq2see.cells import GRU, LSTM, Cell, CellSettings, CellState, Plain, build_cell
from seq2see.dropout import SequenceDropout

Array = NDArray[np.float64]

WIDTH, SIZE = 3, 5
KINDS: dict[str, dict[str, str]] = {
    "rnn": {"cell": "rnn"},
    "rnn logistic": {"cell": "rnn", "activation": "logistic"},
    "gru": {"cell": "gru"},
    "gru before": {"cell": "gru", "reset": "before"},
    "gru logistic": {"cell": "gru", "activation": "logistic"},
    "gru before logistic": {"cell": "gru", "reset": "before", "activation": "logistic"},
    "lstm": {"cell": "lstm"},
}
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)


def made(kind: str, **inputs: int) -> Cell:
    """A cell of that kind with no parameter left at zero."""
    cell = build_cell(CellSettings.model_validate({"size": SIZE, **KINDS[kind]}), inputs or {"x": WIDTH})
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.5)
    return cell


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def array(x: Tensor) -> Array:
    return x.detach().double().numpy()


def by_hand(kind: str, cell: Cell, x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
    """One step of one row, written from the equations."""
    name, *options = kind.split()
    f = logistic if "logistic" in options else np.tanh
    W, U, b = array(cell.W["x"]), array(cell.U), array(cell.b)
    s = state[0]
    if name == "rnn":
        return (f(W @ x + U @ s + b),)
    gates = [(W[i : i + SIZE], U[i : i + SIZE], b[i : i + SIZE]) for i in range(0, len(b), SIZE)]
    if name == "gru":
        r, z = (logistic(W_g @ x + U_g @ s + b_g) for W_g, U_g, b_g in gates[:2])
        W_n, U_n, b_n = gates[2]
        if "before" in options:
            n = f(W_n @ x + b_n + U_n @ (r * s))
        else:
            assert isinstance(cell, GRU)
            n = f(W_n @ x + b_n + r * (U_n @ s + array(cell.b_U)))
        return ((1 - z) * n + z * s,)
    i, forget, g, o = (W_g @ x + U_g @ s + b_g for W_g, U_g, b_g in gates)
    m = logistic(forget) * state[1] + logistic(i) * np.tanh(g)
    return logistic(o) * np.tanh(m), m


@pytest.mark.parametrize("kind", KINDS)
def test_steps_follow_the_equations(kind: str) -> None:
    cell = made(kind)
    inputs = torch.randn(2, 4, WIDTH)
    state: CellState = tuple(torch.randn(2, SIZE) for _ in range(cell.states))
    ours = [tuple(array(part[row]) for part in state) for row in range(2)]
    for t in range(4):
        state = cell(cell.project("x", inputs[:, t], bias=True), state)
        ours = [by_hand(kind, cell, array(inputs[row, t]), ours[row]) for row in range(2)]
        for row in range(2):
            for part, expected in zip(state, ours[row], strict=True):
                np.testing.assert_allclose(array(part[row]), expected, atol=1e-5)


def as_torch(cell: Cell) -> nn.RNN | nn.GRU | nn.LSTM:
    """torch's layer with the cell's weights."""
    kind: type[nn.RNN | nn.GRU | nn.LSTM] = {Plain: nn.RNN, GRU: nn.GRU, LSTM: nn.LSTM}[type(cell)]
    layer = kind(WIDTH, SIZE, batch_first=True)
    layer.weight_ih_l0.data = cell.W["x"].data
    layer.weight_hh_l0.data = cell.U.data
    layer.bias_ih_l0.data = cell.b.data
    layer.bias_hh_l0.data.zero_()
    if isinstance(cell, GRU):
        layer.bias_hh_l0.data[2 * SIZE :] = cell.b_U.data
    return layer


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_run_equals_torchs_own_layer_row_by_row(kind: str, reverse: bool) -> None:
    cell = made(kind)
    layer = as_torch(cell)
    inputs = torch.randn(4, 4, WIDTH)
    outputs, last = cell.read({"x": inputs}, MASK, reverse=reverse)
    for row, length in enumerate(MASK.sum(1).tolist()):
        assert (outputs[row, length:] == 0).all()
        if not length:
            assert (last[row] == 0).all()
            continue
        real = inputs[row : row + 1, :length]
        expected, end = layer(real.flip(1) if reverse else real)
        torch.testing.assert_close(
            outputs[row, :length], expected[0].flip(0) if reverse else expected[0], atol=1e-6, rtol=0
        )
        final = end[0] if isinstance(end, tuple) else end
        torch.testing.assert_close(last[row], final[0, 0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_the_fused_run_equals_the_loop(kind: str) -> None:
    cell = made(kind)
    inputs = torch.randn(4, 4, WIDTH)
    start = tuple(torch.randn(4, SIZE) for _ in range(cell.states))
    fused = cell.fused(inputs, start)
    assert fused is not None
    outputs, last = cell._loop(inputs, start, SequenceDropout())
    torch.testing.assert_close(fused[0], outputs, atol=1e-5, rtol=0)
    for ours, theirs in zip(fused[1], last, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_gradients_of_the_fused_run_equal_those_of_the_loop(kind: str) -> None:
    cell = made(kind)
    inputs = torch.randn(4, 4, WIDTH)
    start = tuple(torch.randn(4, SIZE, requires_grad=True) for _ in range(cell.states))
    wanted = [*cell.parameters(), *start]

    def gradients(outputs: Tensor, last: CellState) -> tuple[Tensor, ...]:
        total = outputs.pow(2).sum() + torch.stack([part.pow(3).sum() for part in last]).sum()
        return torch.autograd.grad(total, wanted)

    for ours, theirs in zip(
        gradients(*cell.run({"x": inputs}, start)),
        gradients(*cell._loop(inputs, start, SequenceDropout())),
        strict=True,
    ):
        assert torch.isfinite(ours).all()
        assert ours.abs().sum() > 0
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_the_gradient_of_a_sequence_is_the_numerical_one() -> None:
    """Of the function over time with a gradient written by hand; an LSTM's steps are those of fused decoders."""
    for gates, states in ((3, 1), (4, 2)):
        shapes = [(2, 3, gates * 2), (gates * 2, 2), *[(2, 2)] * states]
        projected, U, *start = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
        b_U = torch.randn(2, dtype=torch.float64, requires_grad=True) if states == 1 else None
        assert torch.autograd.gradcheck(
            lambda projected, U, b_U, *start: (lambda outputs, last: (outputs, *last))(
                *run_sequence(projected, U, b_U, start)
            ),
            (projected, U, b_U, *start),
        )


def test_a_gru_without_gradients_is_that_with_gradients() -> None:
    """Torch's kernel and the function over time; also where products have half precision."""
    cell, inputs = made("gru"), torch.randn(4, 4, WIDTH)
    expected, _ = cell.run({"x": inputs})
    with torch.no_grad():
        torch.testing.assert_close(cell.run({"x": inputs})[0], expected, atol=1e-6, rtol=0)
    exact = torch.autograd.grad(expected.square().sum(), list(cell.parameters()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, _ = cell.run({"x": inputs})
        halved, _ = cell.run({"x": inputs.bfloat16()})  # as a dense layer below it gives them
    assert outputs.dtype == halved.dtype == torch.float32
    torch.testing.assert_close(outputs, expected, atol=0.02, rtol=0.02)
    torch.testing.assert_close(halved, expected, atol=0.05, rtol=0.05)
    for ours, other in zip(torch.autograd.grad(outputs.square().sum(), list(cell.parameters())), exact, strict=True):
        torch.testing.assert_close(ours, other, atol=0.1, rtol=0.05)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("rnn", "gru", "lstm")])
def test_forms_without_a_kernel_run_as_a_loop_of_steps(kind: str) -> None:
    cell = made(kind)
    inputs = torch.randn(4, 4, WIDTH)
    assert cell.fused(inputs, cell.zeros(inputs, 4)) is None
    outputs, last = cell.read({"x": inputs}, MASK)
    state = cell.zeros(inputs, 4)
    for t in range(4):
        after = cell(cell.project("x", inputs[:, t], bias=True), state)
        state = tuple(torch.where(MASK[:, t, None], new, old) for new, old in zip(after, state, strict=True))
        torch.testing.assert_close(outputs[MASK[:, t], t], state[0][MASK[:, t]])
    torch.testing.assert_close(last, state[0])
    assert (outputs[~MASK] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_of_no_steps_changes_nothing(kind: str) -> None:
    cell = made(kind)
    start = tuple(torch.randn(2, SIZE) for _ in range(cell.states))
    outputs, last = cell.run({"x": torch.zeros(2, 0, WIDTH)}, start)
    assert outputs.shape == (2, 0, SIZE)
    assert last is start
    outputs, final = cell.read({"x": torch.zeros(2, 0, WIDTH)}, torch.zeros(2, 0, dtype=torch.bool))
    assert (outputs.shape, final.tolist()) == ((2, 0, SIZE), [[0.0] * SIZE] * 2)


@pytest.mark.parametrize("kind", KINDS)
def test_what_padding_holds_is_never_read(kind: str) -> None:
    cell = made(kind)
    inputs = torch.randn(4, 4, WIDTH)
    spoilt = torch.where(MASK[..., None], inputs, torch.full_like(inputs, 1e3))
    for reverse in (False, True):
        clean, spoiled = (cell.read({"x": x}, MASK, reverse=reverse) for x in (inputs, spoilt))
        torch.testing.assert_close(clean, spoiled, atol=0, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_the_input_add_up(kind: str) -> None:
    """W [y; c; h] = W_y y + W_c c + W_h h, the bias counted once."""
    cell = made(kind, y=3, c=2, h=4)
    parts = {"y": torch.randn(2, 1, 3), "c": torch.randn(2, 1, 2), "h": torch.randn(2, 1, 4)}
    joined = torch.cat([cell.W[name] for name in parts], dim=1)
    expected = torch.cat(list(parts.values()), dim=-1)[:, 0] @ joined.t() + cell.b
    projected = sum(cell.project(name, part[:, 0], bias=name == "y") for name, part in parts.items())
    assert isinstance(projected, Tensor)
    torch.testing.assert_close(projected, expected, atol=1e-5, rtol=0)
    stepped = cell(projected, cell.zeros(projected, 2))
    outputs, _ = cell.run({name: parts[name] for name in ("h", "y", "c")})
    torch.testing.assert_close(outputs[:, 0], stepped[0], atol=1e-5, rtol=0)


def test_every_option_of_a_cell_changes_what_it_gives() -> None:
    inputs = torch.randn(1, 3, WIDTH)
    given = {}
    for kind in KINDS:
        cell = made(kind)
        for parameter in cell.parameters():
            nn.init.constant_(parameter, 0.3)
        given[kind] = cell.run({"x": inputs})[0]
    names = list(given)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            assert not torch.allclose(given[one], given[other], atol=1e-4), (one, other)


def test_an_lstm_starts_with_its_forget_gate_open() -> None:
    cell = LSTM({"x": WIDTH}, SIZE)
    assert (cell.b[SIZE : 2 * SIZE] == 1).all()
    assert cell.b.sum() == SIZE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True])
def test_an_encoder_learns_from_a_padded_batch_what_it_learns_from_its_rows(kind: str, reverse: bool) -> None:
    cell, inputs, lengths = made(kind), torch.randn(4, 4, WIDTH), MASK.sum(1).tolist()
    outputs, last = cell.read({"x": inputs}, MASK, reverse=reverse)
    together = torch.autograd.grad(outputs.pow(2).sum() + last.sum(), list(cell.parameters()))
    alone = [torch.zeros_like(parameter) for parameter in cell.parameters()]
    for row, length in enumerate(lengths):
        if length:
            real = inputs[row : row + 1, :length]
            outputs, state = cell.run({"x": real.flip(1) if reverse else real})
            found = torch.autograd.grad(outputs.pow(2).sum() + state[0].sum(), list(cell.parameters()))
            alone = [total + one for total, one in zip(alone, found, strict=True)]
    for ours, theirs in zip(together, alone, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
