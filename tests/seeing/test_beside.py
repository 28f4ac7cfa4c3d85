"""An autoencoder beside PCA: what was given is seen, whatever its numbers are."""

from __future__ import annotations

import numpy as np
import pytest

from seq2see.seeing import Column, Row
from seq2see.seeing.plots import beside_plot


@pytest.mark.parametrize(
    ("given", "expected"),
    [([0.0, 4.0, 8.0, 16.0], [0, 0.25, 0.5, 1]), ([0.0, 0.25, 0.5, 0.75], [0, 0.25, 0.5, 0.75])],
)
def test_pictures_are_drawn_in_the_range_of_what_was_given(given: list[float], expected: list[float]) -> None:
    errors = Column("mean squared error", [Row("autoencoder", 1.0, 0.9, 1.1)])
    rows = {"given": [np.array(given)], "autoencoder": [np.array(given) * 2]}
    figure = beside_plot(errors, rows, shape=(2, 2))
    drawn = [axes.images[0].get_array() for part in figure.subfigs for axes in part.axes if axes.images]
    assert np.asarray(drawn[0]).ravel().tolist() == pytest.approx(expected)
    assert np.asarray(drawn[1]).max() == 1  # what lies beyond is white
