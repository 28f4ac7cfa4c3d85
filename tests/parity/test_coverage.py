"""Coverage over several steps, in a line and on a grid, against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seq2see.attention import Attention, Candidates, build_attention
from seq2see.attention.build import AttentionSettings
from seq2see.attention.scores import Coverage
from seq2see.looks import Layout
from seq2see.memory import Places, View
from tests.parity.reference import Array, array, softmax

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


@pytest.mark.parametrize("kernel", [1, 3, 4, 9])
@pytest.mark.parametrize("shape", [(ROWS * COLUMNS,), (ROWS, COLUMNS)], ids=["line", "grid"])
def test_a_window_sees_of_earlier_looks_what_a_look_at_everything_would(shape: tuple[int, ...], kernel: int) -> None:
    score = Coverage(QUERY, KEY, size=5, filters=2, kernel=kernel, axes=len(shape))
    layout = Layout("grid", shape) if len(shape) == 2 else Layout()
    keys, query = torch.randn(2, ROWS * COLUMNS, 5), torch.randn(2, 1, QUERY)
    past = torch.rand(2, 1, ROWS * COLUMNS, requires_grad=True)
    numbers = torch.tensor([[0, 1, 11, 1], [7, 3, 4, 8]])
    everywhere = score(query, Candidates(keys, layout, past=past)).gather(2, numbers[:, None])
    within = score(query, Candidates(keys[torch.arange(2)[:, None], numbers], layout, numbers, past))
    torch.testing.assert_close(within, everywhere)
    upstream = torch.randn(2, 1, 4)
    (ours,), (plain,) = (torch.autograd.grad(found, past, upstream) for found in (within, everywhere))
    torch.testing.assert_close(ours, plain)


@pytest.mark.parametrize("heads", [1, 2])
def test_what_a_loop_of_windows_keeps_does_not_grow_with_the_input(heads: int) -> None:
    """Bytes that autograd saves, each storage once, beside the keys and values themselves."""
    settings = AttentionSettings(score="coverage", scope="local-predicted", window=2, heads=heads, size=4)
    attention = build_attention(settings, query=KEY, view=View(KEY))

    def saved(places: int) -> int:
        prepared = attention.prepare(Places(torch.randn(2, places, KEY), torch.ones(2, places, dtype=torch.bool)))
        storages: dict[int, int] = {}

        def save(tensor: Tensor) -> Tensor:
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        past, looks = None, []
        with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
            for step in range(6):
                looks.append(attention(torch.randn(2, 1, KEY), prepared, positions=step, past=past))
                past = looks[-1].past
        return max(storages.values())

    assert saved(5000) == saved(500)
