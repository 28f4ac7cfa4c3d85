from __future__ import annotations

import numpy as np
import pytest
import sacrebleu

from seq2see.errors import UserError
from seq2see.evaluation import METRICS, Rows, lookup, mean_interval, measure, metric_interval, paired_bootstrap
from seq2see.evaluation.metrics import RowMetric

BY_ROW = [name for name in METRICS if METRICS[name].outputs_only and issubclass(METRICS[name], RowMetric)]


def copies(rows: Rows, *, spoiled: int) -> Rows:
    """Right answers but for the first so many, forty rows in all."""
    many = rows.select(list(range(len(rows))) * 7)
    right = [texts[0] for texts in many.references]
    return many.with_predictions(["wrong"] * spoiled + right[spoiled:])


@pytest.mark.parametrize("name", BY_ROW)
def test_a_draw_from_sums_is_the_metric_of_the_drawn_rows(corpus: Rows, name: str) -> None:
    metric = lookup(name)
    assert isinstance(metric, RowMetric)
    drawn = [0, 0, 3, 4, 1, 4]
    counts = np.bincount(drawn, minlength=len(corpus)).astype(float)[None]
    expected = measure([name], corpus.select(drawn))[name]
    assert metric.finish(counts @ metric.statistics(corpus))[0] == pytest.approx(expected)


def test_a_clear_difference_is_found_and_a_model_does_not_beat_itself(corpus: Rows) -> None:
    better, worse = copies(corpus, spoiled=2), copies(corpus, spoiled=30)
    for name in ("bleu", "exact"):
        clear = paired_bootstrap(name, better, worse, samples=200)
        assert clear.wins == 1.0
        assert clear.p_value == pytest.approx(1 / 201)
        assert 0 < clear.difference.low < clear.difference.value < clear.difference.high
    same = paired_bootstrap("bleu", better, better, samples=50)
    assert (same.wins, same.p_value, same.difference.value) == (0.5, 1.0, 0.0)


def test_direction_is_the_metrics_own(corpus: Rows) -> None:
    better, worse = copies(corpus, spoiled=2), copies(corpus, spoiled=30)
    found = paired_bootstrap("cer", better, worse, samples=50)
    assert found.wins == 1.0
    assert found.difference.high < 0
    turned = paired_bootstrap("cer", worse, better, samples=50)
    assert turned.wins == 0.0
    assert turned.p_value == found.p_value


def test_chance_differences_are_not_significant() -> None:
    chance = np.random.default_rng(3)
    flips = chance.random((2, 300)) < 0.5
    first, second = (Rows(["y" if flip else "n" for flip in side], [["y"]] * 300) for side in flips)
    found = paired_bootstrap("exact", first, second, samples=500)
    assert found.p_value > 0.05
    assert found.difference.low < 0 < found.difference.high


def test_values_beside_the_draws_are_sacrebleus(corpus: Rows) -> None:
    single = Rows(corpus.predictions, [texts[:1] for texts in corpus.references])
    found = paired_bootstrap("bleu", single, single.with_predictions(["x"] * 6), samples=10)
    expected = sacrebleu.corpus_bleu(corpus.predictions, [[texts[0] for texts in corpus.references]]).score
    assert found.first == pytest.approx(expected)


def test_the_interval_of_a_mean_is_the_normal_one_for_many_values() -> None:
    values = np.random.default_rng(0).normal(2.0, 3.0, size=2000)
    found = mean_interval(values.tolist(), samples=2000, generator=np.random.default_rng(5))
    error = 1.96 * values.std() / np.sqrt(len(values))
    assert found.value == pytest.approx(values.mean())
    assert (found.high - found.low) / 2 == pytest.approx(error, rel=0.1)


def test_the_interval_of_a_share_agrees_with_that_of_its_mean() -> None:
    rows = Rows(["y"] * 30 + ["n"] * 70, [["y"]] * 100)
    share = metric_interval("exact", rows, generator=np.random.default_rng(2))
    mean = mean_interval([1.0] * 30 + [0.0] * 70, generator=np.random.default_rng(2))
    assert share.to_dict() == pytest.approx(mean.to_dict())
    assert share.low < share.value == 0.3 < share.high


def test_lower_case_reaches_the_draws() -> None:
    rows = Rows(["A", "b"], [["a"], ["B"]])
    assert metric_interval("exact_lc", rows, samples=5).low == 1.0
    assert metric_interval("exact", rows, samples=5).high == 0.0


def test_same_generator_same_result(corpus: Rows) -> None:
    ones = [metric_interval("chrf", corpus, samples=50, generator=np.random.default_rng(7)) for _ in range(2)]
    assert ones[0] == ones[1] != metric_interval("chrf", corpus, samples=50, generator=np.random.default_rng(8))


def test_what_cannot_be_drawn_is_refused(corpus: Rows) -> None:
    with pytest.raises(UserError, match=r"'distinct1' is not a sum over rows.*allowed: .*bleu"):
        metric_interval("distinct1", corpus)
    with pytest.raises(UserError, match="the references differ"):
        paired_bootstrap("exact", Rows(["a"], [["a"]]), Rows(["a"], [["b"]]))
    with pytest.raises(UserError, match="no values"):
        mean_interval([])
    with pytest.raises(UserError, match="bootstrap samples: 0"):
        mean_interval([1.0], samples=0)
    with pytest.raises(UserError, match=r"confidence level: 95"):
        mean_interval([1.0], level=95.0)
