"""Windows in a line and on a grid against plain loops over all places."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seq2see.attention import Attention, build_score
from seq2see.attention.scopes import LocalMonotonic, LocalPredicted, Scope
from seq2see.looks import Layout
from seq2see.memory import Places, View
from tests.parity.reference import Array, Window, array, looked

QUERY, KEY, QUERIES = 4, 6, 3
LINE = [11, 1, 6, 0, 2]
GRID = (4, 5)
CUT = [(4, 5), (1, 5), (3, 2), (0, 0), (2, 1)]
"""Real rows and columns of each grid."""


def in_a_line() -> tuple[Places, list[tuple[int, ...]]]:
    mask = torch.arange(max(LINE)) < torch.tensor(LINE)[:, None]
    return Places(torch.randn(*mask.shape, KEY), mask), [(j,) for j in range(max(LINE))]


def on_a_grid() -> tuple[Places, list[tuple[int, ...]]]:
    where = list(itertools.product(range(GRID[0]), range(GRID[1])))
    mask = torch.tensor([[row < rows and column < columns for row, column in where] for rows, columns in CUT])
    return Places(torch.randn(*mask.shape, KEY), mask, Layout("grid", GRID)), list(where)


def made(scope: Scope, *, score: str = "additive") -> Attention:
    attention = Attention(build_score(score, QUERY, KEY, {"size": 5}), scope=scope)
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention


def compare(
    attention: Attention,
    places: Places,
    where: list[tuple[int, ...]],
    windows: list[list[Window]],
    query: Tensor,
    t: int,
) -> None:
    """Every row and query; energies without a window are the score's own, which have a test of their own."""
    look = attention(query, attention.prepare(places), positions=torch.arange(t, t + QUERIES))
    free = Attention(attention.score)
    energies = array(free(query, free.prepare(places)).energies)
    for row, mask in enumerate(places.mask.tolist()):
        for number in range(QUERIES):
            weights, context = looked(
                energies[row, number], array(places.states[row]), mask, where, windows[row][number]
            )
            np.testing.assert_allclose(array(look.dense()[row, number]), weights, atol=1e-5)
            np.testing.assert_allclose(array(look.context[row, number]), context, atol=1e-5)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("reach", [1, 2, 20])
@pytest.mark.parametrize("t", [0, 4, 50])
def test_a_monotonic_window_in_a_line(reach: int, t: int, gaussian: bool) -> None:
    """p_t = t, kept inside the input."""
    places, where = in_a_line()
    attention = made(LocalMonotonic(View(KEY), reach=reach, gaussian=gaussian))
    windows = [
        [Window(np.array([min(t + i, max(length - 1, 0))], float), reach, gaussian) for i in range(QUERIES)]
        for length in LINE
    ]
    compare(attention, places, where, windows, torch.randn(len(LINE), QUERIES, QUERY), t)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("t", [0, 3, 50])
def test_a_monotonic_window_on_a_grid_runs_over_columns(t: int, gaussian: bool) -> None:
    places, where = on_a_grid()
    attention = made(LocalMonotonic(View(KEY, "grid"), reach=1, gaussian=gaussian))
    windows = [
        [Window(np.array([min(t + i, max(columns - 1, 0))], float), 1, gaussian) for i in range(QUERIES)]
        for _, columns in CUT
    ]
    compare(attention, places, where, windows, torch.randn(len(CUT), QUERIES, QUERY), t)


def predicted(attention: Attention, query: Tensor, extent: Array) -> Array:
    """p_t = M sigmoid(v' tanh(W q)), for each axis its own row of v and its own M."""
    assert isinstance(attention.scope, LocalPredicted)
    W, v = array(attention.scope.W.weight), array(attention.scope.v.weight)
    shares = 1 / (1 + np.exp(-(np.tanh(array(query) @ W.T) @ v.T)))
    return np.asarray(extent[:, None] * shares)


@pytest.mark.parametrize("reach", [1, 3])
def test_a_predicted_window_in_a_line(reach: int) -> None:
    places, where = in_a_line()
    attention = made(LocalPredicted(View(KEY), query=QUERY, size=5, reach=reach))
    query = 2 * torch.randn(len(LINE), QUERIES, QUERY)
    centres = predicted(attention, query, np.array(LINE, float)[:, None])
    windows = [[Window(centres[row, i], reach) for i in range(QUERIES)] for row in range(len(LINE))]
    assert len({int(w.position[0]) for w in windows[0]}) > 1
    compare(attention, places, where, windows, query, 0)


@pytest.mark.parametrize("reach", [1, 2])
def test_a_predicted_window_on_a_grid_is_a_square(reach: int) -> None:
    places, where = on_a_grid()
    attention = made(LocalPredicted(View(KEY, "grid"), query=QUERY, size=5, reach=reach))
    query = 2 * torch.randn(len(CUT), QUERIES, QUERY)
    centres = predicted(attention, query, np.array(CUT, float))
    windows = [[Window(centres[row, i], reach) for i in range(QUERIES)] for row in range(len(CUT))]
    compare(attention, places, where, windows, query, 0)


@pytest.mark.parametrize("lay", [in_a_line, on_a_grid])
def test_a_predicted_position_learns_through_its_gaussian(lay: object) -> None:
    """The gradient of W and v by differences, in steps small enough that no window jumps."""
    places, _ = in_a_line() if lay is in_a_line else on_a_grid()
    attention = made(LocalPredicted(View(KEY, places.layout.kind), query=QUERY, size=5, reach=2)).double()
    places.states = places.states.double()
    query, upstream = torch.randn(5, 1, QUERY, dtype=torch.float64), torch.randn(5, 1, KEY, dtype=torch.float64)

    def value() -> Tensor:
        total: Tensor = (attention(query, attention.prepare(places)).context * upstream).sum()
        return total

    weight, tiny = attention.scope.v.weight, 1e-3
    value().backward()
    assert weight.grad is not None
    with torch.no_grad():
        for j in range(weight.numel()):
            flat = weight.view(-1)
            flat[j] += tiny
            above = value()
            flat[j] -= 2 * tiny
            below = value()
            flat[j] += tiny
            expected = float((above - below) / (2 * tiny))
            assert weight.grad.view(-1)[j].item() == pytest.approx(expected, rel=2e-2, abs=2e-3)


@pytest.mark.parametrize("score", ["location", "coverage", "static", "deep", "dot"])
def test_a_window_as_wide_as_the_input_without_a_gaussian_is_global(score: str) -> None:
    places, _ = in_a_line()
    near = Attention(build_score(score, KEY, KEY), scope=LocalMonotonic(View(KEY), reach=20, gaussian=False))
    far = Attention(near.score)
    query, past = torch.randn(len(LINE), QUERIES, KEY), torch.rand(len(LINE), QUERIES, max(LINE))
    given = past if near.score.remembers else None
    ours = near(query, near.prepare(places), past=given)
    theirs = far(query, far.prepare(places), past=given)
    torch.testing.assert_close(ours.dense(), theirs.dense(), atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.context, theirs.context, atol=1e-5, rtol=0)
    hidden = theirs.energies.masked_fill(~places.mask[:, None], -torch.inf)
    torch.testing.assert_close(ours.dense_energies(), hidden, atol=1e-5, rtol=0)


@pytest.mark.parametrize("layout", [in_a_line, on_a_grid])
def test_a_window_costs_no_more_than_the_input(layout: Callable[[], tuple[Places, list[tuple[int, ...]]]]) -> None:
    places, _ = layout()
    attention = made(LocalPredicted(View(KEY, places.layout.kind), query=QUERY, size=5, reach=1000))
    look = attention(torch.randn(len(LINE), QUERIES, QUERY), attention.prepare(places))
    assert look.weights.shape[-1] <= 4 * places.mask.shape[1]
    torch.testing.assert_close(look.dense().sum(-1), places.mask.any(1)[:, None].float().expand(-1, QUERIES))
