"""A search with packed weights, whose steps are fused, finds what one through the model's parts finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seq2see import packed_weights
from seq2see.decoders import top_symbols
from seq2see.packed_weights import PackedWeights, is_packable
from seq2see.search import Hypothesis, SearchOptions, search
from seq2see.search import models as search_models
from tests.search.helpers import INPUTS, build, padded

OPTIONS: list[dict[str, Any]] = [
    {},
    {"beam": 4, "n_best": 3},
    {"beam": 3, "length_penalty": 0.5, "coverage_penalty": 0.2},
    {"sample": True, "n_best": 3, "seed": 5},
    {"prefix": [4, 5], "beam": 2},
    {"prefix": [[4], [], [5, 6], [], [], [7]]},
    {"min_length": 4, "avoid_unknown": True},
    {"min_length": 3, "beam": 2},
    {"runners_up": 0},
    {"runners_up": 20},
]


def found(model: Any, options: SearchOptions, packed: list[PackedWeights] | None) -> list[list[Hypothesis]]:
    return search([(model, padded(INPUTS))], range(len(INPUTS)), options, packed=packed)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_the_same_search(cell: str, options: dict[str, Any]) -> None:
    for seed, symbols in ((0, 9), (1, 60)):
        model, given = build(cell=cell, seed=seed, symbols=symbols), SearchOptions(max_length=8, **options)
        same(found(model, given, None), found(model, given, [PackedWeights()]))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("options", [{}, {"beam": 4, "n_best": 3}, {"n_best": 2, "sample": True}], ids=str)
def test_with_weights_that_are_packed_and_rounded(
    cell: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models whose weights are large enough to be packed; the output layer is also multiplied in two passes."""
    monkeypatch.setattr(packed_weights, "LARGE", 0)
    for seed, readout in ((0, 0), (1, 64)):
        model = build(cell=cell, seed=seed, symbols=300, size=64, sharpness=1.5, readout=readout)
        given, packed = SearchOptions(max_length=8, **options), PackedWeights()
        assert is_packable(model.head.V)
        for _ in range(2):
            same(found(model, given, None), found(model, given, [packed]), off=3e-5)


def test_with_weights_of_the_caller() -> None:
    oracle = [{1: {"source": [1.0, *[0.0] * (len(row) - 1)]}} if row else {} for row in INPUTS]
    for beam in (1, 3):
        model, options = build(), SearchOptions(max_length=6, beam=beam, oracle=oracle)
        same(found(model, options, None), found(model, options, [PackedWeights()]))


def test_fused_steps_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return top_symbols.top_symbols(*arguments)

    monkeypatch.setattr(search_models, "top_symbols", counted)
    found(build(), SearchOptions(max_length=3), None)
    assert not calls
    found(build(), SearchOptions(max_length=3), [PackedWeights()])
    assert calls


def same(plain: list[list[Hypothesis]], fused: list[list[Hypothesis]], off: float = 1e-4) -> None:
    for ours, theirs in zip(fused, plain, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.finished == other.finished
            assert one.score == pytest.approx(other.score, abs=1e-4)
            np.testing.assert_allclose(one.log_probs, other.log_probs, atol=off, rtol=0)
            np.testing.assert_allclose(one.looks["source"], other.looks["source"], atol=1e-5)
            for step, same_step in zip(one.runners_up, other.runners_up, strict=True):
                assert [i for i, _ in step] == [i for i, _ in same_step]
                np.testing.assert_allclose([p for _, p in step], [p for _, p in same_step], atol=1e-4)
