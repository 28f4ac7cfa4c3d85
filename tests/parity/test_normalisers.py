"""Sparsemax and entmax 1.5 against their definitions: tau by bisection in doubles, gradients by differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.attention.normalisers import entmax15, masked, normalisers, sparsemax

Array = NDArray[np.float64]


def bisected(energies: Array, powered: Callable[[Array], Array]) -> Array:
    """p_j = powered(max(z_j - tau, 0)) with the tau for which they sum to one; z is what `powered` is given."""
    low, high = energies.min() - 2.0, energies.max()
    for _ in range(200):
        tau = (low + high) / 2
        if powered(np.maximum(energies - tau, 0)).sum() > 1:
            low = tau
        else:
            high = tau
    return powered(np.maximum(energies - low, 0))


def by_definition(name: str, energies: Array) -> Array:
    """argmax_p p.e + H(p) over the simplex, H being the entropy of the normaliser's name, by its optimality conditions:
    p = max(e - tau, 0) for sparsemax, p = max(e / 2 - tau, 0) ** 2 for entmax 1.5."""
    if name == "sparsemax":
        return bisected(energies, lambda x: x)
    if name == "entmax15":
        return bisected(energies / 2, np.square)
    powers = np.exp(energies - energies.max())
    return powers / powers.sum()


def drawn(places: int, scale: float, *, rows: int = 20) -> Tensor:
    return scale * torch.randn(rows, places, dtype=torch.float64)


@pytest.mark.parametrize("places", [1, 2, 7, 60])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", list(normalisers))
def test_weights_are_those_of_the_definition(name: str, scale: float, places: int) -> None:
    energies = drawn(places, scale)
    weights, single = normalisers[name]()(energies), normalisers[name]()(energies.float())
    for row in range(len(energies)):
        expected = by_definition(name, energies[row].numpy())
        np.testing.assert_allclose(weights[row].numpy(), expected, atol=1e-9)
        np.testing.assert_allclose(single[row].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("name", list(normalisers))
def test_energies_that_are_equal_get_equal_weights(name: str) -> None:
    for places in (1, 3, 500):
        weights = normalisers[name]()(torch.full((places,), 3.7))
        torch.testing.assert_close(weights, torch.full((places,), 1 / places), atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("name", list(normalisers))
def test_gradients_are_differences_of_the_definition(name: str, scale: float) -> None:
    energies, upstream, tiny = drawn(6, scale, rows=12), drawn(6, 1.0, rows=12).numpy(), 1e-6
    energies.requires_grad_()
    normalisers[name]()(energies).backward(torch.from_numpy(upstream))
    assert energies.grad is not None
    for row in range(len(energies)):
        start = energies[row].detach().numpy()
        for j in range(6):
            step = tiny * (np.arange(6) == j)
            change = by_definition(name, start + step) - by_definition(name, start - step)
            expected = upstream[row] @ change / (2 * tiny)
            np.testing.assert_allclose(energies.grad[row, j].item(), expected, atol=1e-5)


@pytest.mark.parametrize("normalise", [sparsemax, entmax15])
def test_the_sparse_ones_give_far_places_exactly_nothing(normalise: Callable[[Tensor], Tensor]) -> None:
    energies = drawn(60, 3.0).float()
    weights = normalise(energies)
    assert (weights == 0).float().mean() > 0.8
    assert (torch.softmax(energies, -1) > 0).all()


@pytest.mark.parametrize("name", list(normalisers))
def test_masked_weights_are_those_of_the_real_places_alone(name: str) -> None:
    energies = drawn(9, 1.0, rows=6).float()[:, None].requires_grad_()
    mask = torch.arange(9) < torch.tensor([9, 5, 1, 0, 2, 8])[:, None]
    weights = masked(normalisers[name](), energies, mask[:, None])
    (weights * torch.randn_like(weights)).sum().backward()
    assert energies.grad is not None
    assert torch.isfinite(energies.grad).all()
    for row in range(6):
        real = int(mask[row].sum())
        if real:
            expected = by_definition(name, energies[row, 0, :real].detach().double().numpy())
            np.testing.assert_allclose(weights[row, 0, :real].detach(), expected, atol=1e-5)
        assert (weights[row, 0, real:] == 0).all()
        assert (energies.grad[row, 0, real:] == 0).all()
