"""The likeliest symbols are those that sorting all of them gives."""

from __future__ import annotations

import numpy as np
import pytest

from seq2see.search.top import Likeliest, likeliest


@pytest.mark.parametrize("symbols", [1, 5, 16, 170, 171, 1000, 7903])
@pytest.mark.parametrize("number", [0, 1, 5, 10])
def test_they_are_those_of_a_sort(symbols: int, number: int) -> None:
    values = np.random.default_rng(symbols).normal(size=(7, symbols)).astype(np.float32)
    values[2] = np.round(values[2])  # many equal ones
    values[3, ::2] = -np.inf
    found = likeliest(values.copy(), number)
    wanted = -np.sort(-values, axis=1)[:, :number]
    np.testing.assert_array_equal(found.log_probs, wanted)
    np.testing.assert_array_equal(np.take_along_axis(values, found.ids, 1), wanted)
    assert all(len(set(row)) == min(number, symbols) for row in found.ids.tolist())


def test_of_equals_the_lower_id_comes_first() -> None:
    assert likeliest(np.array([[0.0, 1.0, 0.0, 1.0]]), 4).ids.tolist() == [[1, 3, 0, 2]]


def test_symbols_without_some() -> None:
    best = Likeliest(np.array([[7, 8, 9]]), np.array([[-1.0, -2.0, -3.0]]))
    assert best.without([8, 3]).tolist() == [[-1.0, -np.inf, -3.0]]
    assert best.first(1).ids.tolist() == [[7]]
