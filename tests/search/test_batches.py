"""An input's result is its own: the batch around it changes nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seq2see.search import Hypothesis
from tests.search.helpers import INPUTS, build, found

ALONE = [1, 2, 4]
"""A short input, the empty one and the longest; the other orders and neighbours come with the shuffled batch."""

MODES = {
    "greedy": {},
    "beam": {"beam": 4, "n_best": 3},
    "covering": {"beam": 3, "n_best": 2, "coverage_penalty": 0.3},
    "sampling": {"sample": True, "n_best": 3, "temperature": 1.2, "top_k": 6, "top_p": 0.95, "seed": 5},
}


def assert_same(one: list[Hypothesis], other: list[Hypothesis]) -> None:
    assert [hypothesis.ids for hypothesis in one] == [hypothesis.ids for hypothesis in other]
    for mine, theirs in zip(one, other, strict=True):
        assert mine.finished == theirs.finished
        assert mine.log_probs == pytest.approx(theirs.log_probs, abs=1e-5)
        assert mine.score == pytest.approx(theirs.score, abs=1e-5)
        assert mine.looks.keys() == theirs.looks.keys()
        for name, weights in mine.looks.items():
            np.testing.assert_allclose(weights, theirs.looks[name], atol=1e-5)
        for here, there in zip(mine.runners_up, theirs.runners_up, strict=True):
            assert [chance for _, chance in here] == pytest.approx([chance for _, chance in there], abs=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bidirectional", [True, False], ids=["both-ways", "one-way"])
@pytest.mark.parametrize("score", ["none", "dot", "additive"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_alone_or_among_others(cell: str, score: str, bidirectional: bool, mode: str) -> None:
    options = MODES[mode]
    if score == "none":
        options = {key: value for key, value in options.items() if key != "coverage_penalty"}
    model = build(cell=cell, score=score, bidirectional=bidirectional)
    together = found(model, **options)
    for number in ALONE:
        assert_same(found(model, [INPUTS[number]], numbers=[number], **options)[0], together[number])


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_a_batch_does_not_matter(mode: str) -> None:
    model = build()
    order = list(range(len(INPUTS)))
    random.shuffle(order)
    together = found(model, **MODES[mode])
    shuffled = found(model, [INPUTS[number] for number in order], numbers=order, **MODES[mode])
    for place, number in enumerate(order):
        assert_same(shuffled[place], together[number])


def test_inputs_leave_the_batch_at_different_steps() -> None:
    """The tests above would prove little if all outputs were of one length."""
    lengths = {len(row[0].ids) for row in found(build(seed=1), beam=4)}
    assert len(lengths) > 2
