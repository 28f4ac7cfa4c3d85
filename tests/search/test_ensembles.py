"""Several models behind the interface of one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seq2see.data.batches import Sequences
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.search import Hypothesis, ModelStepper, SearchOptions, search
from tests.search.helpers import INPUTS, SYMBOLS, build, found, ids_of, padded

ROWS = list(range(len(INPUTS)))


def joined(models: list[EncoderDecoder], **options: object) -> list[list[Hypothesis]]:
    sources = [(model, padded(INPUTS)) for model in models]
    return search(sources, ROWS, SearchOptions(**{"max_length": 7, **options}))


@pytest.mark.parametrize("mode", [{}, {"beam": 3, "n_best": 3}, {"sample": True, "n_best": 2}], ids=str)
def test_a_model_with_itself_is_the_model(mode: dict[str, int]) -> None:
    model = build()
    alone, doubled = found(model, **mode), joined([model, model], **mode)
    assert ids_of(alone) == ids_of(doubled)
    for row, other in zip(alone, doubled, strict=True):
        for one, two in zip(row, other, strict=True):
            assert one.log_probs == pytest.approx(two.log_probs, abs=1e-5)
            np.testing.assert_allclose(one.looks["source"], two.looks["source"], atol=1e-6)


@torch.no_grad()
def test_probabilities_are_averaged() -> None:
    models = [build(seed=1), build(seed=2, cell="lstm"), build(seed=3, score="none")]
    steppers = [ModelStepper([(model, padded(INPUTS))], len(INPUTS)) for model in models]
    joint = ModelStepper([(model, padded(INPUTS)) for model in models], len(INPUTS))
    tokens = np.full(len(INPUTS), 2)
    for stepper in [*steppers, joint]:
        stepper.begin(1)
    for _ in range(3):
        alone = [stepper.step(tokens) for stepper in steppers]
        log_probs, looks = joint.step(tokens)
        mean = np.mean([np.exp(one) for one, _ in alone], axis=0)
        np.testing.assert_allclose(np.exp(log_probs), mean, atol=1e-6, rtol=1e-5)
        np.testing.assert_allclose(
            looks["source"], (alone[0][1]["source"] + alone[1][1]["source"]) / 2, atol=1e-6, rtol=1e-5
        )
        tokens = log_probs.argmax(-1)


def test_an_ensemble_is_not_its_first_model() -> None:
    assert ids_of(joined([build(seed=1), build(seed=2)])) != ids_of(joined([build(seed=1)]))


def test_looks_are_joined_row_by_row_where_the_models_see_the_same_places() -> None:
    """The second model cuts the second input into one place more: that input alone has no joint look."""
    mine, theirs = padded([[4, 5, 6], [7, 8]]), padded([[4, 5, 6], [7, 8, 9]])
    options = SearchOptions(max_length=4, beam=2)
    whole, parted = search([(build(seed=1), mine), (build(seed=2), theirs)], [0, 1], options)
    assert whole[0].looks["source"].shape == (len(whole[0].ids), 3)
    assert parted[0].looks == {}


def test_places_of_one_number_but_other_symbols_are_not_the_same() -> None:
    inputs = padded([[4, 5]])["source"]
    mine = {"source": Sequences(inputs.ids, inputs.mask, [["ab", "c"]])}
    theirs = {"source": Sequences(inputs.ids, inputs.mask, [["a", "bc"]])}
    ((same,),) = search([(build(seed=1), mine), (build(seed=2), mine)], [0], SearchOptions(max_length=2))
    ((other,),) = search([(build(seed=1), mine), (build(seed=2), theirs)], [0], SearchOptions(max_length=2))
    assert set(same.looks) == {"source"}
    assert other.looks == {}


def test_inputs_of_other_widths_are_searched_together() -> None:
    """One model reads characters, the other two words: each has its own padding."""
    mine, theirs = padded([[4, 5, 6, 7, 8, 9], [4]]), padded([[4, 5], [6, 7]])
    results = search(
        [(build(seed=1), mine), (build(seed=2), theirs)], [0, 1], SearchOptions(max_length=5, beam=3, n_best=3)
    )
    assert [len(row) for row in results] == [3, 3]


def test_oracle_and_coverage_need_the_same_places() -> None:
    sources = [(build(seed=1), padded([[4, 5]])), (build(seed=2), padded([[4, 5, 6]]))]
    with pytest.raises(UserError, match="the models of the ensemble see different places in 'source'"):
        search(sources, [0], SearchOptions(oracle={0: {"source": [0.5, 0.5]}}))
    with pytest.raises(UserError, match="the models of this ensemble cut input 0 differently"):
        search(sources, [0], SearchOptions(beam=2, coverage_penalty=0.1))


def test_one_output_vocabulary() -> None:
    with pytest.raises(UserError, match=rf"one output vocabulary, got sizes \[{SYMBOLS}, 12\]"):
        joined([build(), build(symbols=12)])
    with pytest.raises(UserError, match="at least one model"):
        joined([])


def test_the_memory_is_never_repeated() -> None:
    """However wide the beam, keys and values keep one row for each input still searched."""
    model, held = build(), []
    whole = model.decoder.step
    model.decoder.step = lambda ready, *given, **named: (
        held.append(len(ready.looks["source"].keys)),
        whole(ready, *given, **named),
    )[1]
    found(model, beam=5)
    assert held[0] == len(INPUTS)
    assert held == sorted(held, reverse=True)
    assert held[-1] < len(INPUTS)
