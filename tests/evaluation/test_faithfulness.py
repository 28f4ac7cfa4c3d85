"""Agreement of rankings: against the definition, and on maps whose truth is known."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.evaluation.faithfulness import PlaceWeights, faithfulness, kendall_tau, same_top


def by_definition(one: np.ndarray, other: np.ndarray) -> float:
    """tau-b from its textbook form: (P - Q) / sqrt((P + Q + T) (P + Q + U))."""
    alike = opposed = tied_one = tied_other = 0
    for i, j in combinations(range(len(one)), 2):
        a, b = one[i] - one[j], other[i] - other[j]
        alike += a * b > 0
        opposed += a * b < 0
        tied_one += a == 0 and b != 0
        tied_other += b == 0 and a != 0
    both = alike + opposed
    return (alike - opposed) / ((both + tied_one) * (both + tied_other)) ** 0.5


def test_tau_is_that_of_the_definition_with_and_without_ties() -> None:
    draw = np.random.default_rng(1)
    for _ in range(50):
        one, other = draw.integers(0, 6, size=(2, 8)).astype(float)
        assert kendall_tau(one, other) == pytest.approx(by_definition(one, other))


def test_tau_at_its_ends() -> None:
    rising = np.arange(5.0)
    assert kendall_tau(rising, 3 * rising + 1) == 1
    assert kendall_tau(rising, -rising) == -1
    assert np.isnan(kendall_tau(rising, np.ones(5)))


def test_the_top_place() -> None:
    assert same_top(np.array([0.1, 0.9]), np.array([3.0, 4.0])) == 1
    assert same_top(np.array([0.9, 0.1]), np.array([3.0, 4.0])) == 0


def rows(count: int, *, truth: float) -> list[PlaceWeights]:
    """Rows whose importance is the attention itself, with noise in place of the rest."""
    draw = np.random.default_rng(2)
    made = []
    for _ in range(count):
        weights = draw.dirichlet(np.ones(6), size=3)
        made.append(PlaceWeights(weights, {"occlusion": truth * weights + (1 - truth) * draw.random((3, 6))}))
    return made


def test_attention_that_is_the_truth_agrees_and_chance_does_not() -> None:
    (one,) = faithfulness({"source": rows(40, truth=1.0)}).agreements
    assert one.tau.value == pytest.approx(1)
    assert one.top.value == pytest.approx(1)
    assert abs(one.shuffled_tau.value) < 0.06
    assert one.shuffled_tau.low < 0 < one.shuffled_tau.high
    assert one.shuffled_top.value == pytest.approx(1 / 6, abs=0.05)


def test_attention_that_says_nothing_is_no_better_than_chance() -> None:
    (one,) = faithfulness({"source": rows(40, truth=0.0)}).agreements
    assert one.tau.low < 0 < one.tau.high


def test_steps_without_an_order_are_left_out_and_counted() -> None:
    flat = PlaceWeights(np.full((2, 4), 0.25), {"occlusion": np.arange(8.0).reshape(2, 4)})
    half = PlaceWeights(np.array([[0.25] * 4, [0.1, 0.2, 0.3, 0.4]]), {"occlusion": np.arange(8.0).reshape(2, 4)})
    found = faithfulness({"source": [flat, half]})
    assert (found.rows, found.steps) == (1, 1)
    assert found.agreements[0].tau.value == 1
    with pytest.raises(UserError, match="'source': at no step do two places weigh differently"):
        faithfulness({"source": [flat]})


def test_as_a_record_and_as_a_table() -> None:
    found = faithfulness({"source": rows(3, truth=1.0)})
    assert found.to_dict()["agreements"][0]["tau"]["value"] == pytest.approx(1)
    assert "3 rows, 9 output steps" in found.text()
