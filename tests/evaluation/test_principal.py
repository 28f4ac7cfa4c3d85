"""Principal components and the angles between subspaces."""

from __future__ import annotations

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.evaluation.pca import Pca, principal_angles


def test_components_hold_the_variance_that_they_say() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 5)) * [5, 3, 1, 0.5, 0.1] + 7
    found = Pca.fit(rows)
    assert found.components @ found.components.T == pytest.approx(np.eye(5), abs=1e-9)
    assert found.shares == pytest.approx(found.transform(rows, 5).var(0) / rows.var(0).sum())
    lost = np.square(found.reconstruct(rows, 2) - rows).sum()
    assert lost / np.square(rows - rows.mean(0)).sum() == pytest.approx(found.shares[2:].sum())


def test_a_map_is_not_mirrored() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 3))
    one, other = Pca.fit(rows), Pca.fit(rows[::-1])
    assert one.transform(rows, 2) == pytest.approx(other.transform(rows, 2))


def test_fewer_components_than_asked_for_are_zeros() -> None:
    rows = np.array([[0.0], [1.0], [2.0]])
    assert Pca.fit(rows).transform(rows, 2)[:, 1].tolist() == [0, 0, 0]
    assert Pca.fit(np.ones((3, 2))).shares.tolist() == [0, 0]
    with pytest.raises(UserError, match="two rows or more, got 1"):
        Pca.fit(np.ones((1, 2)))


def test_angles_between_subspaces() -> None:
    draw = np.random.default_rng(1)
    basis = draw.normal(size=(2, 6))
    assert principal_angles(basis, draw.normal(size=(2, 2)) @ basis) == pytest.approx([0, 0], abs=1e-6)
    one = np.eye(4)[:2]
    tilted = np.array([[1.0, 0, 0, 0], [0, np.cos(1e-6), np.sin(1e-6), 0]])
    assert principal_angles(one, tilted)[-1] == pytest.approx(np.degrees(1e-6), rel=1e-4)
    assert principal_angles(one, np.eye(4)[2:]) == pytest.approx([90, 90])
