"""Quality by input length and by position in the input."""

from __future__ import annotations

from itertools import pairwise

import pytest

from seq2see.errors import UserError
from seq2see.evaluation import Rows, measure, quality_by_length, recall_by_position
from seq2see.evaluation.by_length import equal_count_edges, length_curves


def of_lengths(lengths: list[int], *, right: list[bool]) -> Rows:
    inputs = [" ".join("w" * length) for length in lengths]
    return Rows(["yes" if good else "no" for good in right], [["yes"]] * len(lengths), inputs=inputs)


def test_bins_by_given_edges() -> None:
    rows = of_lengths([1, 9, 10, 19, 40], right=[True, True, True, False, False])
    bins = quality_by_length(["exact"], rows, edges=[10, 20, 30])
    assert [(part.shortest, part.longest, part.rows) for part in bins] == [(1, 9, 2), (10, 19, 2), (40, 40, 1)]
    assert [part.metrics["exact"] for part in bins] == [1.0, 0.5, 0.0]
    assert bins[0].mean_length == 5.0


def test_bins_of_equal_count() -> None:
    rows = of_lengths([6, 5, 4, 3, 2, 1], right=[False] * 3 + [True] * 3)
    bins = quality_by_length(["exact"], rows, bins=3)
    assert [(part.shortest, part.longest, part.rows) for part in bins] == [(1, 2, 2), (3, 4, 2), (5, 6, 2)]
    assert [part.metrics["exact"] for part in bins] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("bins", [1, 2, 5, 50])
@pytest.mark.parametrize("lengths", [[3] * 7, [1, 1, 1, 1, 9], list(range(40)), [5, 1, 5, 2, 5, 5, 8]])
def test_bins_hold_every_row_once_and_never_part_a_length(lengths: list[int], bins: int) -> None:
    parts = quality_by_length(["exact"], of_lengths(lengths, right=[True] * len(lengths)), bins=bins)
    assert len(parts) <= bins
    assert sum(part.rows for part in parts) == len(lengths)
    assert all(first.longest < second.shortest for first, second in pairwise(parts))


def test_many_equal_lengths_leave_the_other_bins_their_share() -> None:
    assert equal_count_edges([1] * 6 + [2, 3, 4, 5, 6, 7], 4) == [2, 4, 6]


def test_bins_are_as_even_as_whole_lengths_allow() -> None:
    lengths = [length for length, rows in {4: 3, 5: 18, 6: 2, 7: 17, 8: 22, 9: 3}.items() for _ in range(rows)]
    parts = quality_by_length(["exact"], of_lengths(lengths, right=[True] * len(lengths)), bins=3)
    assert [part.rows for part in parts] == [21, 19, 25]


def test_length_is_counted_in_the_inputs_unit() -> None:
    rows = Rows(["K AE1 T"], [["K AE1 T"]], inputs=["cat"], unit="symbol", input_unit="character")
    assert quality_by_length(["exact"], rows)[0].longest == 3
    assert quality_by_length(["exact"], rows, lengths=[12])[0].longest == 12


def test_bad_bins_are_refused() -> None:
    rows = of_lengths([1], right=[True])
    with pytest.raises(UserError, match=r"must rise: \[20, 10\]"):
        quality_by_length(["exact"], rows, edges=[20, 10])
    with pytest.raises(UserError, match="0 given"):
        quality_by_length(["exact"], rows, bins=0)
    with pytest.raises(UserError, match="needs inputs"):
        quality_by_length(["exact"], Rows(["a"], [["a"]]))
    with pytest.raises(UserError, match="0 given"):
        recall_by_position(rows, bins=0)


def test_a_model_that_forgets_the_start() -> None:
    inputs = [" ".join(f"w{i}" for i in range(20))] * 3
    rows = Rows([" ".join(f"w{i}" for i in range(10, 20))] * 3, [["-"]] * 3, inputs=inputs)
    parts = recall_by_position(rows)
    assert [part.recall for part in parts] == [0.0] * 5 + [1.0] * 5
    assert [part.symbols for part in parts] == [6] * 10
    assert (parts[3].start, parts[3].end) == (0.3, 0.4)


def test_the_mean_over_positions_is_the_metric_recall(corpus: Rows) -> None:
    rows = Rows(corpus.predictions, corpus.references, inputs=[texts[0] for texts in corpus.references])
    parts = recall_by_position(rows)
    mean = sum(part.recall * part.symbols for part in parts) / sum(part.symbols for part in parts)
    assert mean == pytest.approx(measure(["recall"], rows)["recall"])
    assert 0 < mean < 1


def test_short_inputs_lie_evenly_and_repeated_words_share_what_was_said() -> None:
    one = recall_by_position(Rows(["a"], [["-"]], inputs=["a"]))
    assert [(part.start, part.recall) for part in one] == [(0.5, 1.0)]
    two = recall_by_position(Rows(["a"], [["-"]], inputs=["a a"]), bins=4)
    assert [(part.start, part.recall) for part in two] == [(0.25, 0.5), (0.75, 0.5)]


def test_curves_of_several_models_on_the_check_rows() -> None:
    lengths = [1] * 20 + [5] * 20
    good, bad = of_lengths(lengths, right=[True] * 40), of_lengths(lengths, right=[True] * 20 + [False] * 20)
    points = length_curves("exact", {"good": good, "bad": bad}, bins=2)
    assert [(point.model, point.mean_length, point.rows, point.value) for point in points] == [
        ("good", 1.0, 20, 1.0),
        ("good", 5.0, 20, 1.0),
        ("bad", 1.0, 20, 1.0),
        ("bad", 5.0, 20, 0.0),
    ]
    assert [point.against is None for point in points] == [True, True, False, False]
    assert points[3].to_dict()["ahead"] == -1.0
    assert points[3].to_dict()["p_value"] < 0.01
    assert points[2].to_dict()["p_value"] == 1.0
    with pytest.raises(UserError, match="those of 'other' have other inputs or outputs"):
        length_curves("exact", {"good": good, "other": of_lengths([1], right=[True])})


def test_a_metric_that_is_no_sum_over_rows_has_no_interval() -> None:
    rows = Rows(["a b", "a c"], [["a b"], ["a c"]], inputs=["x", "x y"])
    assert [point.low for point in length_curves("distinct1", {"m": rows}, bins=2)] == [None, None]


def test_recall_by_position_has_intervals_where_asked_for(corpus: Rows) -> None:
    plain, sure = recall_by_position(corpus, bins=3), recall_by_position(corpus, bins=3, intervals=True)
    assert [part.recall for part in plain] == [part.recall for part in sure]
    assert all((part.low or 0) <= part.recall <= (part.high or 0) for part in sure)
    assert "low" not in plain[0].to_dict()
    assert "low" in sure[0].to_dict()
