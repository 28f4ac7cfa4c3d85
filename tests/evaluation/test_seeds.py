"""Student's interval against the tables of the textbooks, and what a ranking says of variants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seq2see.errors import UserError
from seq2see.evaluation.ranking import Contender, Outcome, Ranking, student_interval, student_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (30, 2.042)]
)
def test_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, abs=5e-4)


def test_the_median_is_zero_and_many_degrees_are_normal() -> None:
    assert student_quantile(0.5, 7) == pytest.approx(0, abs=1e-12)
    assert student_quantile(0.975, 100_000) == pytest.approx(1.95996, abs=1e-4)


def test_an_interval_over_seeds() -> None:
    made = student_interval([0.5, 0.7])
    assert made is not None
    assert (made.value, made.low, made.high) == pytest.approx((0.6, 0.6 - 1.2706, 0.6 + 1.2706), abs=1e-4)
    assert student_interval([0.5]) is None
    with pytest.raises(UserError, match="no seeds"):
        student_interval([])


def contender(name: str, *values: float, metric: str = "exact") -> Contender:
    outcomes = tuple(
        Outcome(seed, {metric: value, "perplexity": 2.0}, 10, 1.5, 0.125, 1000, f"runs/{name}{seed}")
        for seed, value in enumerate(values, start=1)
    )
    return Contender(name, {"attention.score": name}, outcomes)


ROWS = (contender("dot", 0.80, 0.81, 0.82), contender("additive", 0.82, 0.83, 0.81), contender("none", 0.1, 0.11, 0.1))


def test_the_best_and_those_not_told_apart_from_it() -> None:
    ranking = Ranking("exact", ROWS)
    assert ranking.best.name == "additive"
    assert [one.name for one in ranking.rivals] == ["dot"]
    assert ranking.verdict().endswith("over 3 seeds not distinguishable from: dot")
    assert [(one["best"], one["overlaps_best"]) for one in ranking.to_dicts()] == [
        (False, True),
        (True, False),
        (False, False),
    ]


def test_of_errors_the_lowest_is_best() -> None:
    ranking = Ranking("cer", (contender("dot", 0.3, 0.31, metric="cer"), contender("deep", 0.1, 0.101, metric="cer")))
    assert ranking.best.name == "deep"
    assert not ranking.rivals
    assert "overlaps no other" in ranking.verdict()


def test_one_seed_has_no_interval_and_says_so() -> None:
    ranking = Ranking("exact", (contender("dot", 0.8), contender("none", 0.1)))
    assert not ranking.rivals
    assert "may be chance" in ranking.verdict()
    assert ranking.to_dicts()[0]["low"] is None


def test_a_metric_that_is_no_number_is_never_the_best() -> None:
    ranking = Ranking("exact", (contender("deep", float("nan"), 0.9), contender("dot", 0.2, 0.3)))
    assert ranking.best.name == "dot"


def test_the_table_keeps_the_order_given_and_marks_the_best() -> None:
    lines = Ranking("exact", ROWS).text().splitlines()
    rows = [line for line in lines if line.startswith("│")]
    assert [line.split()[1] for line in rows] == ["dot", "additive", "none"]
    assert "overlaps the best" in rows[0]
    assert "best" in rows[1]
    assert "best" not in rows[2]
    assert all("125.0" in row and "1,000" in row for row in rows)


def outcomes(name: str, exact: float, cer: float) -> Contender:
    made = Outcome(1, {"exact": exact, "cer": cer}, 10, 1.5, 0.125, 1000, f"runs/{name}")
    return Contender(name, {"attention.score": name}, (made,))


def test_equals_are_told_apart_by_the_next_metric() -> None:
    ranking = Ranking("exact", (outcomes("dot", 0.0, 0.9), outcomes("deep", 0.0, 0.5), outcomes("none", 0.0, 0.7)))
    assert ranking.best.name == "deep"
    assert not ranking.tied
    assert ranking.verdict().startswith("best: deep (exact 0.0000, as others have; by cer 0.5000)")


def test_what_no_metric_tells_apart_is_a_tie() -> None:
    ranking = Ranking("exact", (outcomes("dot", 0.0, 0.5), outcomes("deep", 0.0, 0.5), outcomes("none", 0.0, 0.7)))
    assert ranking.verdict() == "a tie, alike in every metric: dot, deep (exact 0.0000)"
    assert [one["best"] for one in ranking.to_dicts()] == [True, True, False]
    rows = [line for line in ranking.text().splitlines() if line.startswith("│")]
    assert ["tied" in row for row in rows] == [True, True, False]
    assert not any("best" in row for row in rows)


@pytest.mark.parametrize(
    ("metric", "values", "bounds"),
    [("exact", (0.0, 0.5), (0, 1)), ("cer", (0.1, 1.5), (0, 9.69)), ("bleu", (60, 99), (0, 100))],
)
def test_intervals_end_where_the_metric_does(
    metric: str, values: tuple[float, ...], bounds: tuple[float, float]
) -> None:
    made = contender("dot", *values, metric=metric).interval(metric)
    assert made is not None
    assert (made.low, made.high) == pytest.approx(bounds, abs=0.01)
    perplexity = contender("dot", 1.0, 4.0, metric="perplexity")
    outcomes = tuple(replace(one, metrics={"perplexity": 1.0 + one.seed}) for one in perplexity.outcomes)
    low = replace(perplexity, outcomes=outcomes).interval("perplexity")
    assert low is not None
    assert low.low == 1.0
