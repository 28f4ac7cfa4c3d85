"""How far numbers are from the right ones, and what the mean of all would be worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.evaluation import (
    Mean,
    Rows,
    baseline_from_dict,
    baselines_for,
    check,
    default_baseline,
    default_metrics,
    lookup,
    measure,
)


def rows() -> Rows:
    made = [np.array([1.0, 2.0]), np.array([0.0, 0.0])]
    true = [[np.array([1.0, 4.0])], [np.array([3.0, 3.0]), np.array([0.0, 1.0])]]
    return Rows(["", ""], [[""], [""]], numbers=made, true_numbers=true)


def test_the_mean_of_all_squares_with_the_nearest_reference() -> None:
    assert measure(["mse"], rows()) == {"mse": (0 + 4 + 0 + 1) / 4}
    assert measure(["mse"], rows().select([1, 1])) == {"mse": 0.5}
    assert lookup("mse").show(0.00123456) == "0.001235"


def test_the_mean_of_all_distances_with_the_nearest_reference() -> None:
    assert measure(["mae"], rows()) == {"mae": (0 + 2 + 0 + 1) / 4}


def test_the_last_value_is_what_outputs_that_go_on_can_repeat() -> None:
    going_on = replace(rows(), continued=[np.array([1.0, 1.0]), np.array([0.0, 0.0])])
    model = baseline_from_dict({"name": "last"})
    assert model.measure(["mse"], going_on) == {"mse": (0 + 9 + 0 + 1) / 4}
    assert baselines_for("numbers") == ["mean"]
    assert baselines_for("numbers", continued=True) == ["mean", "last"]
    with pytest.raises(UserError, match="baseline 'last' needs"):
        model.measure(["mse"], rows())


def test_the_mean_is_what_can_be_said_without_looking() -> None:
    model = Mean.fit([np.array([0.0, 2.0]), np.array([2.0, 4.0])])
    assert model.measure(["mse"], rows()) == {"mse": (0 + 1 + 4 + 0) / 4}
    assert baseline_from_dict(model.to_dict()).measure(["mse"], rows()) == model.measure(["mse"], rows())
    with pytest.raises(UserError, match="needs training outputs"):
        Mean.fit([])


def test_numbers_have_metrics_of_their_own() -> None:
    assert default_metrics("numbers") == ["mse"]
    assert default_baseline("numbers") == "mean"
    with pytest.raises(UserError, match="'bleu' is not for outputs of type 'numbers'; allowed: mse"):
        check(["bleu"], "numbers")
    with pytest.raises(UserError, match="'perplexity' is not for"):
        check(["perplexity"], "numbers")
    with pytest.raises(UserError, match="needs true-numbers"):
        measure(["mse"], Rows(["a"], [["b"]]))
