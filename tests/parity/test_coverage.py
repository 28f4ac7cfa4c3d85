"""Coverage over several steps, in a line and on a grid, against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from seq2see.attention import Attention
from seq2see.attention.coverage import Coverage
from seq2see.attention.records import Candidates
from seq2see.memory import Layout, Places
from tests.parity.looking import Array, array, softmax

QUERY, KEY, ROWS, COLUMNS = 4, 6, 3, 4


def convolved(filters: Array, looked: Array, shape: tuple[int, ...], kernel: int) -> Array:
    """f_j = F * looked around j: (places, filters); nothing lies beyond the edge."""
    before = (kernel - 1) // 2
    grid = looked.reshape(shape)
    features = []
    for place in itertools.product(*map(range, shape)):
        patch = []
        for offset in itertools.product(range(kernel), repeat=len(shape)):
            at = tuple(p + o - before for p, o in zip(place, offset, strict=True))
            inside = all(0 <= one < size for one, size in zip(at, shape, strict=True))
            patch.append(grid[at] if inside else 0.0)
        features.append(filters @ np.array(patch))
    return np.stack(features)


@pytest.mark.parametrize("kernel", [1, 3, 4, 30])
@pytest.mark.parametrize("kind", ["tokens", "grid"])
def test_each_step_sees_the_sum_of_the_steps_before(kind: str, kernel: int) -> None:
    grid = kind == "grid"
    shape = (ROWS, COLUMNS) if grid else (ROWS * COLUMNS,)
    score = Coverage(QUERY, KEY, size=5, filters=2, kernel=kernel, axes=len(shape))
    for parameter in score.parameters():
        nn.init.normal_(parameter)
    attention = Attention(score)
    mask = torch.ones(2, ROWS * COLUMNS, dtype=torch.bool)
    mask[1, 5:] = False
    layout = Layout("grid", shape) if grid else Layout()
    places = Places(torch.randn(2, ROWS * COLUMNS, KEY), mask, layout)
    prepared = attention.prepare(places)
    past, ours = attention.begin(prepared, 1), [np.zeros(ROWS * COLUMNS) for _ in range(2)]
    for _ in range(4):
        query = torch.randn(2, 1, QUERY)
        look = attention(query, prepared, past=past)
        past = look.past
        for row in range(2):
            q, k = array(query[row, 0]), array(places.states[row])
            features = convolved(array(score.F), ours[row], shape, kernel)
            energies = np.full(ROWS * COLUMNS, -np.inf)
            for j in np.flatnonzero(mask[row]):
                inner = array(score.W_q.weight) @ q + array(score.W_k.weight) @ k[j]
                inner = inner + array(score.W_f.weight) @ features[j]
                energies[j] = (array(score.v.weight) @ np.tanh(inner)).item()
            weights = softmax(energies)
            np.testing.assert_allclose(array(look.weights[row, 0]), weights, atol=1e-5)
            ours[row] = ours[row] + weights


@pytest.mark.parametrize("shape", [(ROWS * COLUMNS,), (ROWS, COLUMNS)])
def test_a_kernel_wider_than_the_input_costs_no_more_than_the_input(shape: tuple[int, ...]) -> None:
    score = Coverage(QUERY, KEY, size=5, filters=2, kernel=255, axes=len(shape))
    layout = Layout("grid", shape) if len(shape) == 2 else Layout()
    candidates = Candidates(torch.randn(1, ROWS * COLUMNS, 5), layout, past=torch.rand(1, 1, ROWS * COLUMNS))
    kept: list[int] = []

    def pack(saved: torch.Tensor) -> torch.Tensor:
        kept.append(saved.numel())
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        score(torch.randn(1, 1, QUERY), candidates).sum().backward()
    assert max(kept) <= 4 * (ROWS * COLUMNS) ** 2
    assert score.F.grad is not None
    assert score.F.grad.shape == score.F.shape
