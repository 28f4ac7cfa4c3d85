"""Beam search against every output there is, against greedy, and by its own rules."""

from __future__ import annotations

import math

import pytest
import torch

from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.search import ModelStepper, SearchOptions
from seq2see.search.beam import beam_search
from seq2see.search.constraints import Constraints, Oracle
from seq2see.search.hypotheses import History
from seq2see.search.run import build_hypotheses
from tests.search.helpers import EOS, INPUTS, SYMBOLS, build, every_output, found, ids_of, padded, stepped


def ranked(
    model: EncoderDecoder, row: list[int], *, max_length: int, penalty: float, coverage: float = 0.0
) -> list[tuple[float, list[int]]]:
    """All finished outputs with their scores, best first, worked out one by one."""
    scored = []
    for ids in every_output(SYMBOLS, max_length):
        log_probs, looks = stepped(model, row, ids)
        total = log_probs[range(len(ids)), ids].sum().item()
        score = total / len(ids) ** penalty
        if coverage:
            score += coverage * looks["source"][:, : len(row)].sum(0).clamp(max=1).log().sum().item()
        scored.append((score, ids))
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_all_short_outputs(penalty: float) -> None:
    model = build()
    results = found(model, beam=SYMBOLS, max_length=2, length_penalty=penalty)
    for row, (hypothesis,) in zip(INPUTS, results, strict=True):
        score, ids = ranked(model, row, max_length=2, penalty=penalty)[0]
        assert hypothesis.ids == ids
        assert hypothesis.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("coverage", [0.0, 0.5])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_that_holds_everything_is_exhaustive(penalty: float, coverage: float) -> None:
    """As wide as there are outputs of the greatest length, so that no `<eos>` is crowded out."""
    model, rows = build(seed=3), INPUTS[:3]
    beam = SYMBOLS**3
    options = {"length_penalty": penalty, "coverage_penalty": coverage, "max_length": 3}
    for row, hypotheses in zip(rows, found(model, rows, beam=beam, n_best=8, **options), strict=True):
        expected = ranked(model, row, max_length=3, penalty=penalty, coverage=coverage)[:8]
        assert [hypothesis.ids for hypothesis in hypotheses] == [ids for _, ids in expected]
        assert [one.score for one in hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-5)


def test_the_coverage_penalty_changes_the_order() -> None:
    plain, covering = (found(build(), INPUTS[:2], beam=8, n_best=8, coverage_penalty=beta) for beta in (0, 5))
    assert ids_of(plain) != ids_of(covering)


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy(seed: int) -> None:
    """The options send a beam of 1 to the greedy walk, so the beam itself is called here."""
    model, rows, options = build(seed=seed), len(INPUTS), SearchOptions(max_length=7)
    with torch.no_grad():
        stepper, history = ModelStepper([(model, padded(INPUTS))], rows), History(rows, runners_up=0)
        allowed = Constraints(options, stepper.writable.limits)
        oracle = Oracle(None, stepper.places, rows=rows, max_length=7)
        endings = beam_search(stepper, history, options, allowed=allowed, oracle=oracle)
        paths = history.backtrack(endings)
        told = build_hypotheses(
            paths,
            endings,
            places=stepper.places,
            writable=stepper.writable,
            prefixes=allowed.prefixes,
            options=options,
        )
    assert ids_of(told) == ids_of(found(model))


def test_a_wider_beam_is_at_least_as_good_on_average() -> None:
    model = build(seed=2)
    scores = [sum(row[0].score for row in found(model, beam=beam, patience=math.inf)) for beam in (2, 40)]
    assert scores[1] > scores[0]


def test_n_best_is_sorted_without_doubles_and_ends_properly() -> None:
    for row in found(build(), beam=6, n_best=6):
        keys = [(hypothesis.finished, hypothesis.score) for hypothesis in row]
        assert keys == sorted(keys, reverse=True)
        assert len({tuple(hypothesis.ids) for hypothesis in row}) == len(row) == 6
        for hypothesis in row:
            assert (hypothesis.ids[-1] == EOS) == hypothesis.finished
            assert EOS not in hypothesis.ids[:-1]


def test_the_first_to_finish_does_not_end_the_search() -> None:
    """<eos> at once has P 0.3; <4> and then <eos>, each certain but for the first choice, has the higher score."""
    model = _counting({0: {EOS: 0.3, 4: 0.6, 5: 0.1}, 1: {4: 0.999, EOS: 0.0005}, 2: {EOS: 0.999}})
    best = found(model, [[4]], beam=2, max_length=5)[0][0]
    assert best.ids == [4, 4, EOS]
    assert best.score == pytest.approx(math.log(0.6 * 0.999**2) / 3, abs=1e-2)


def test_outputs_that_break_off_do_not_outnumber_a_sure_one() -> None:
    """At every step <4> is nearly certain, and <eos> the next best thing there is: as many break off as the beam holds
    before the sure one is at its end."""
    model = _counting({step: {4: 0.98, EOS: 0.01, 5: 0.005} for step in range(8)} | {8: {EOS: 1.0}})
    sure = [4] * 8 + [EOS]
    for width in (1, 2, 3, 5):
        best = found(model, [[4]], beam=width, max_length=12)[0][0]
        assert best.ids == sure, width


def test_patience_goes_on_where_others_stop() -> None:
    """Two short outputs finish first; a third, longer by two certain symbols, has the higher score."""
    table = {
        0: {EOS: 0.5, 4: 0.35, 5: 0.15},
        1: {EOS: 0.6, 4: 0.4},
        2: {4: 1.0},
        3: {4: 1.0},
        4: {4: 1.0},
        5: {EOS: 1.0},
    }
    model = _counting(table)
    hasty, patient = (found(model, [[4]], beam=2, patience=patience)[0][0] for patience in (1.0, math.inf))
    assert hasty.ids == [EOS]
    assert patient.ids == [4] * 5 + [EOS]
    assert patient.score > hasty.score


def _counting(table: dict[int, dict[int, float]]):
    """A model whose distribution depends on the step alone: log_probs are replaced by a table."""
    model = build(score="none")
    smallest = 1e-7

    def log_probs(step, ready):
        chances = torch.full((len(step.features), SYMBOLS), smallest)
        for symbol, chance in table.get(step.state.position - 1, {EOS: 1.0}).items():
            chances[:, symbol] = max(chance, smallest)
        return (chances / chances.sum(-1, keepdim=True)).log()

    model.log_probs = log_probs
    return model


def test_a_beam_wider_than_the_vocabulary_gives_what_there_is() -> None:
    (row,) = found(build(), [[4, 5]], beam=50, n_best=50, max_length=1)
    assert len(row) == SYMBOLS - 2
    assert sum(math.exp(hypothesis.log_probability) for hypothesis in row) <= 1 + 1e-6


def test_coverage_needs_attention() -> None:
    with pytest.raises(UserError, match=r"coverage_penalty 0\.2 needs a model with attention"):
        found(build(score="none"), beam=2, coverage_penalty=0.2)
