"""Diversity, reconstruction and likelihood."""

from __future__ import annotations

import math

import pytest

from seq2see.errors import UserError
from seq2see.evaluation import compute, perplexity


def test_distinct_counts_over_all_rows() -> None:
    found = compute(["distinct1", "distinct2"], ["i do not know", "i do not care", "yes"], [["x"]] * 3)
    assert found == pytest.approx({"distinct1": 6 / 9, "distinct2": 4 / 6})


def test_distinct_outputs_only_too_short() -> None:
    assert compute(["distinct1", "distinct2"], ["", "yes"], [["x"]] * 2) == {"distinct1": 1.0, "distinct2": 0.0}


def test_recall_counts_a_word_as_often_as_it_is_said() -> None:
    found = compute(["recall"], ["b a x", "c"], [["-"]] * 2, inputs=["a a b", "c d"])
    assert found == {"recall": pytest.approx((2 + 1) / (3 + 2))}


def test_recall_by_characters_and_of_nothing() -> None:
    assert compute(["recall"], ["ab"], [["-"]], inputs=["abcd"], unit="character") == {"recall": 0.5}
    assert compute(["recall"], ["ab"], [["-"]], inputs=[""]) == {"recall": 1.0}


def test_recall_needs_inputs() -> None:
    with pytest.raises(UserError, match="'recall' needs inputs"):
        compute(["recall"], ["a"], [["a"]])


def test_token_accuracy_by_position() -> None:
    # shifted by one: nothing stands where it should, though all words are there
    assert compute(["token_accuracy"], ["x a b c"], [["a b c"]]) == {"token_accuracy": 0.0}
    assert compute(["token_accuracy"], ["a b"], [["a c b d"]]) == {"token_accuracy": 0.25}
    assert compute(["token_accuracy"], ["a b c d"], [["a b"]]) == {"token_accuracy": 0.5}
    found = compute(["token_accuracy"], ["a b c", ""], [["a x y", "a b"], [""]])
    assert found == {"token_accuracy": pytest.approx(2 / 3)}
    assert compute(["token_accuracy"], [""], [[""]]) == {"token_accuracy": 1.0}


def test_perplexity_is_over_tokens_not_rows() -> None:
    targets = [["a", "b", "<eos>"], ["<eos>"]]
    found = compute(["perplexity"], ["", ""], [[""], [""]], targets=targets, log_probabilities=[-3.0, -5.0])
    assert found == {"perplexity": pytest.approx(math.exp(8 / 4))}
    assert perplexity(-8.0, 4) == found["perplexity"]


def test_perplexity_without_end_and_without_tokens() -> None:
    assert perplexity(-1e6, 3) == math.inf
    with pytest.raises(ValueError, match="there are 0"):
        perplexity(0.0, 0)


def test_perplexity_needs_probabilities() -> None:
    with pytest.raises(UserError, match="'perplexity' needs log-probabilities"):
        compute(["perplexity"], ["a"], [["a"]], targets=[["a"]])
