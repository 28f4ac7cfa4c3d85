"""The probability of given outputs: all at once, step by step, and as a search reports it, all the same."""

from __future__ import annotations

import pytest
import torch

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.search import score_targets
from tests.search.helpers import EOS, INPUTS, build, found, labelled, padded, stepped

OUTPUTS = [[4, 5, EOS], [EOS], [6, 1, 7, 8, EOS], [4, 4, 4, 4, 4, EOS], [8, EOS], [5, 6, EOS]]


def target(rows: list[list[int]]) -> Sequences:
    return padded(rows)["source"]


@pytest.mark.parametrize("score", ["none", "dot", "additive"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_all_at_once_equals_step_by_step(cell: str, score: str) -> None:
    model = build(cell=cell, score=score)
    scored = score_targets(model, Batch(padded(INPUTS), target(OUTPUTS), list(range(len(INPUTS)))))
    for row, ids, given in zip(INPUTS, OUTPUTS, scored, strict=True):
        expected = stepped(model, row, ids)[0][range(len(ids)), ids]
        assert given.log_probs == pytest.approx(expected.tolist(), abs=1e-5)
        assert given.total == pytest.approx(expected.double().sum().item(), abs=1e-5 * len(ids))


@pytest.mark.parametrize("mode", [{}, {"beam": 4}, {"sample": True}], ids=str)
def test_what_a_search_found_scores_as_it_reported(mode: dict[str, int]) -> None:
    model = build()
    hypotheses = [row[0] for row in found(model, **mode)]
    batch = Batch(padded(INPUTS), target([one.ids for one in hypotheses]), list(range(len(INPUTS))))
    for hypothesis, given in zip(hypotheses, score_targets(model, batch), strict=True):
        assert hypothesis.log_probs == pytest.approx(given.log_probs, abs=1e-5)
        assert hypothesis.log_probability == pytest.approx(given.total, abs=1e-5)


def test_labels_have_one_step() -> None:
    model = labelled()
    ids = torch.tensor([0, 1, 2, 3, 0, 1])
    scored = score_targets(model, Batch(padded(INPUTS), Labels(ids), list(range(len(INPUTS)))))
    with torch.no_grad():
        ready = model.ready(padded(INPUTS), len(INPUTS))
        expected = model.log_probs(model.step(ready, model.begin(ready), None), ready)[range(len(ids)), ids]
    assert [given.log_probs for given in scored] == [[pytest.approx(one, abs=1e-5)] for one in expected.tolist()]


def test_a_model_in_training_is_scored_at_rest_and_goes_on_training() -> None:
    model = build(dropout=0.5)
    batch = Batch(padded(INPUTS), target(OUTPUTS), list(range(len(INPUTS))))
    resting = [given.total for given in score_targets(model, batch)]
    model.train()
    model.head.eval()
    assert [given.total for given in score_targets(model, batch)] == resting
    assert model.training
    assert model.decoder.training
    assert not model.head.training


def test_no_rows_and_no_targets() -> None:
    model = build()
    assert score_targets(model, Batch({}, target([[EOS]]), [])) == []
    with pytest.raises(ValueError, match="without targets"):
        score_targets(model, Batch(padded([[4]]), None, [0]))
