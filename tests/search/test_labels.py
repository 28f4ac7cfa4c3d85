"""Labels: one step, one choice, one look."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seq2see.errors import UserError
from seq2see.search import SearchOptions, classify, search
from tests.search.helpers import INPUTS, build, labelled, padded


def test_labels_come_likeliest_first_with_one_look() -> None:
    model, rows = labelled(), list(range(len(INPUTS)))
    results = classify([(model, padded(INPUTS))], rows, 3)
    with torch.no_grad():
        ready = model.ready(padded(INPUTS), len(INPUTS))
        step = model.step(ready, model.begin(ready), None)
        log_probs = model.log_probs(step, ready)
    for row, given, expected, look in zip(INPUTS, results, log_probs, step.looks["source"].dense(), strict=True):
        order = expected.argsort(descending=True).tolist()
        assert [one.ids for one in given] == [[label] for label in order[:3]]
        for one in given:
            assert one.score == one.log_probability == pytest.approx(expected[one.ids[0]].item(), abs=1e-6)
            assert one.finished
            assert [label for label, _ in one.runners_up[0]] == order
            assert one.looks["source"].shape == (1, len(row))
            np.testing.assert_allclose(one.looks["source"][0], look[: len(row)], atol=1e-6)


def test_more_labels_than_there_are() -> None:
    assert [len(row) for row in classify([(labelled(labels=2), padded([[4]]))], [0], 5)] == [2]


def test_one_label_alone_or_among_others() -> None:
    model = labelled()
    together = classify([(model, padded(INPUTS))], list(range(len(INPUTS))))
    for number, row in enumerate(INPUTS):
        ((alone,),) = classify([(model, padded([row]))], [number])
        assert alone.ids == together[number][0].ids
        assert alone.log_probs == pytest.approx(together[number][0].log_probs, abs=1e-5)


def test_an_ensemble_is_the_mean_of_probabilities() -> None:
    models = [labelled(seed=1), labelled(seed=2)]
    alone = [classify([(model, padded([[4, 5]]))], [0], 4)[0] for model in models]
    joint = classify([(model, padded([[4, 5]])) for model in models], [0], 4)[0]
    for one in joint:
        chances = [np.exp(other.log_probability) for row in alone for other in row if other.ids == one.ids]
        assert np.exp(one.log_probability) == pytest.approx(np.mean(chances), abs=1e-6)


def test_the_oracle_moves_the_look() -> None:
    sources = [(labelled(), padded([[4, 5, 6]]))]
    ((free,),), ((moved,),) = classify(sources, [0]), classify(sources, [0], oracle={0: {"source": [0, 0, 1]}})
    assert moved.looks["source"].tolist() == [[0, 0, 1]]
    assert moved.log_probability != pytest.approx(free.log_probability, abs=1e-4)


def test_labels_and_sequences_are_told_apart() -> None:
    with pytest.raises(UserError, match="writes sequences"):
        classify([(build(), padded([[4]]))], [0])
    with pytest.raises(UserError, match="gives labels"):
        search([(labelled(), padded([[4]]))], [0], SearchOptions())


def test_no_inputs_no_labels() -> None:
    assert classify([(labelled(), padded([[4]]))], []) == []
