"""Lengths, prefixes, oracles, looks and runners-up: the same rules in every mode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from seq2see.data.batches import Batch
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe
from seq2see.search import Hypothesis, SearchOptions, constraints, search
from tests.search.helpers import EOS, INPUTS, build, every_output, found, ids_of, padded, stepped

MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam": {"beam": 4, "n_best": 4},
    "sampling": {"sample": True, "n_best": 4},
}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


def all_of(results: list[list[Hypothesis]]) -> list[Hypothesis]:
    return [hypothesis for row in results for hypothesis in row]


@every_mode
def test_lengths_keep_to_their_limits(mode: dict[str, Any]) -> None:
    model = build()
    with torch.no_grad():
        model.head.c[EOS] = 50.0  # it would stop at once
    assert min(len(one.ids) for one in all_of(found(model, **mode))) == 1
    for one in all_of(found(model, min_length=3, max_length=5, **mode)):
        assert EOS not in one.ids[:3]
        assert 4 <= len(one.ids) <= 5
    with torch.no_grad():
        model.head.c[EOS] = -50.0  # it would never stop
    for one in all_of(found(model, max_length=4, **mode)):
        assert len(one.ids) == 4
        assert not one.finished


@every_mode
def test_as_short_as_it_must_be_long(mode: dict[str, Any]) -> None:
    for one in all_of(found(build(), min_length=4, max_length=4, **mode)):
        assert len(one.ids) == 4
        assert EOS not in one.ids
        assert not one.finished


@every_mode
def test_a_prefix_is_said_first_and_its_probability_told(mode: dict[str, Any]) -> None:
    model = build()
    prefixes = [[5, 6], [], [4], [8, 8, 8], [7], [1]]
    results = found(model, prefix=prefixes, **mode)
    for row, prefix, hypotheses in zip(INPUTS, prefixes, results, strict=True):
        for one in hypotheses:
            assert one.ids[: len(prefix)] == prefix
            assert one.forced == len(prefix)
            expected = stepped(model, row, one.ids)[0][range(len(one.ids)), one.ids]
            assert one.log_probs == pytest.approx(expected.tolist(), abs=1e-5)


def test_after_the_prefix_the_search_goes_on_as_if_it_had_chosen_it() -> None:
    model = build()
    for row, (one,) in zip(INPUTS, found(model), strict=True):
        ((again,),) = found(model, [row], prefix=one.ids[:2])
        assert again.ids == one.ids


@every_mode
def test_a_prefix_that_ends_is_the_whole_output(mode: dict[str, Any]) -> None:
    """Even where the search would not have ended it yet: this is how a given output is looked at."""
    for row in found(build(), prefix=[4, 7, EOS], min_length=5, **mode):
        assert {tuple(one.ids) for one in row} == {(4, 7, EOS)}
        assert all(one.finished and one.forced == 3 and len(one.looks["source"]) == 3 for one in row)


def test_one_prefix_serves_all_inputs() -> None:
    assert {tuple(row[0].ids[:2]) for row in found(build(), prefix=[6, 5])} == {(6, 5)}


def test_a_prefix_the_model_holds_impossible_is_still_said() -> None:
    model = build()
    with torch.no_grad():
        model.head.c[5] = -torch.inf
    for mode in MODES.values():
        for one in all_of(found(model, prefix=[5, 5], **mode)):
            assert one.ids[:2] == [5, 5]
            assert math.isfinite(one.score)


@every_mode
def test_the_oracle_rules_its_step_and_changes_what_follows(mode: dict[str, Any]) -> None:
    model, rows = build(), [[4, 5, 6], [7, 8]]
    oracle = [{0: {"source": [0, 0, 1]}, 2: {"source": [0.5, 0.5, 0]}}, {}]
    free, ruled = found(model, rows, **mode), found(model, rows, oracle=oracle, **mode)
    assert ids_of(free)[1] == ids_of(ruled)[1]
    assert ids_of(free)[0] != ids_of(ruled)[0]
    for one in ruled[0]:
        assert one.looks["source"][0].tolist() == [0, 0, 1]
        if len(one.ids) > 2:
            assert one.looks["source"][2].tolist() == [0.5, 0.5, 0]
    assert any(len(one.ids) > 2 for one in ruled[0])


def test_an_oracle_with_the_models_own_weights_changes_nothing() -> None:
    model, row = build(), [4, 5, 6]
    ((one,),) = found(model, [row])
    own = {step: {"source": weights.tolist()} for step, weights in enumerate(one.looks["source"])}
    ((again,),) = found(model, [row], oracle=own)
    assert again.ids == one.ids
    assert again.log_probs == pytest.approx(one.log_probs, abs=1e-5)


@every_mode
def test_looks_have_a_row_for_each_token_and_a_column_for_each_place(mode: dict[str, Any]) -> None:
    model = build()
    for row, hypotheses in zip(INPUTS, found(model, **mode), strict=True):
        for one in hypotheses:
            assert one.looks["source"].shape == (len(one.ids), len(row))
            assert one.looks["source"].dtype == np.float32
            if row:
                np.testing.assert_allclose(one.looks["source"].sum(1), 1, atol=1e-5)
            _, expected = stepped(model, row, one.ids)
            np.testing.assert_allclose(one.looks["source"], expected["source"][:, : len(row)], atol=1e-5)


def test_without_attention_there_are_no_looks() -> None:
    assert all(one.looks == {} for one in all_of(found(build(score="none"))))


@every_mode
def test_runners_up_are_the_likeliest_of_their_step(mode: dict[str, Any]) -> None:
    model = build()
    for row, hypotheses in zip(INPUTS, found(model, runners_up=3, **mode), strict=True):
        for one in hypotheses:
            expected = stepped(model, row, one.ids)[0].exp().topk(3, dim=-1)
            assert [[symbol for symbol, _ in step] for step in one.runners_up] == expected.indices.tolist()
            chances = [chance for step in one.runners_up for _, chance in step]
            assert chances == pytest.approx(expected.values.flatten().tolist(), abs=1e-5)


@every_mode
def test_scores_are_what_they_are_said_to_be(mode: dict[str, Any]) -> None:
    for one in all_of(found(build(), length_penalty=0.7, **mode)):
        assert one.log_probability == pytest.approx(sum(one.log_probs))
        assert one.score == pytest.approx(one.log_probability / len(one.ids) ** 0.7)


@every_mode
def test_a_language_model_needs_no_inputs(mode: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = EncoderDecoder(
        load_recipe({"decoder": {"size": 6, "embedding": {"size": 5}}, "attention": "none"}), Sizes({}, 9)
    )
    results = search([(model, {})], [0, 1], SearchOptions(max_length=5, **mode))
    assert len(results) == 2
    if not mode.get("sample"):
        assert ids_of(results)[0] == ids_of(results)[1]


def test_no_inputs_no_results() -> None:
    assert search([(build(), padded([[4]]))], []) == []


def test_a_diverged_model_is_told() -> None:
    model = build()
    with torch.no_grad():
        model.head.V[4] = torch.nan
    for mode in MODES.values():
        with pytest.raises(UserError, match="not numbers"):
            found(model, **mode)


def test_a_model_in_training_searches_at_rest_and_goes_on_training() -> None:
    model = build(dropout=0.5)
    resting = ids_of(found(model))
    model.train()
    assert ids_of(found(model)) == resting
    assert all(module.training for module in model.modules())
    step, _ = model.forward_batch(Batch(padded([[4]]), padded([[5, EOS]])["source"], [0]))
    assert step.features.requires_grad


@every_mode
def test_no_output_begins_with_an_avoided_prefix(mode: dict[str, Any]) -> None:
    """Prune the best output three times, at its end, in its middle and at its beginning: each time it is another."""
    model = build()
    for number, row in enumerate(INPUTS):
        avoided: list[list[int]] = []
        for cut in (9, 2, 1):
            options = {"avoid_prefixes": avoided, **mode}
            (best, *_), *_ = [found(model, [row], numbers=[number], **options)[0]]
            avoided.append(best.ids[:cut])
            for one in found(model, [row], numbers=[number], **options)[0]:
                assert not any(one.ids[: len(prefix)] == prefix for prefix in avoided)
                expected = stepped(model, row, one.ids)[0][range(len(one.ids)), one.ids]
                assert one.log_probs == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_wide_beam_finds_the_best_output_of_those_that_are_left() -> None:
    model, symbols = build(symbols=7), 7
    options: dict[str, Any] = {"beam": 64, "n_best": 64, "max_length": 4, "patience": math.inf, "length_penalty": 0}
    avoided = [[4], [5, 6], [6, 6, EOS], [EOS]]
    for row in INPUTS[:2]:
        expected = {}
        for ids in every_output(symbols, 4):
            if not any(ids[: len(prefix)] == prefix for prefix in avoided):
                expected[tuple(ids)] = stepped(model, row, ids)[0][range(len(ids)), ids].sum().item()
        best = sorted(expected, key=lambda ids: -expected[ids])[:5]
        ((*ranked,),) = found(model, [row], avoid_prefixes=avoided, **options)
        assert [tuple(one.ids) for one in ranked[:5]] == best
        assert ranked[0].log_probability == pytest.approx(expected[best[0]], abs=1e-4)


@every_mode
def test_avoided_prefixes_belong_to_their_input(mode: dict[str, Any]) -> None:
    model = build()
    free = found(model, **mode)
    avoided = [[[row[0].ids[0]]] if number % 2 else [] for number, row in enumerate(free)]
    for number, (before, after) in enumerate(zip(free, found(model, avoid_prefixes=avoided, **mode), strict=True)):
        if number % 2:
            assert all(one.ids[0] != before[0].ids[0] for one in after)
        else:
            assert ids_of([before]) == ids_of([after])


def test_a_forced_prefix_may_have_avoided_continuations() -> None:
    model = build()
    (row,) = found(model, INPUTS[:1], beam=3, n_best=3, prefix=[5], avoid_prefixes=[[5, 4], [6]])
    assert all(one.ids[0] == 5 and one.ids[1] != 4 for one in row)


@every_mode
def test_what_cannot_be_avoided_is_told(mode: dict[str, Any]) -> None:
    everything = [[symbol] for symbol in (1, *range(3, 9))]
    told: dict[str, dict[str, Any]] = {
        "nothing is left": {"avoid_prefixes": everything},
        "begins with it": {"avoid_prefixes": [[5, 4]], "prefix": [5, 4, 6]},
        "number 1: token 0 is 99": {"avoid_prefixes": [[4], [99]]},
        "number 0: token 0 is 3": {"avoid_prefixes": [[EOS, 4]]},
        "empty": {"avoid_prefixes": [[[]]] * len(INPUTS)},
        "6 inputs, 1 lists": {"avoid_prefixes": [[[4]]]},
    }
    for message, options in told.items():
        with pytest.raises(UserError, match=message):
            found(build(), **options, **mode)


def test_avoided_prefixes_are_stored_once_for_inputs_that_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[list[int]] = []
    insert = constraints._insert
    monkeypatch.setattr(constraints, "_insert", lambda trie, ids: (stored.append(list(ids)), insert(trie, ids)))
    model, prefixes = build(), [[5, 4], [6]]
    free = found(model, beam=3, max_length=4)
    expected = found(model, beam=3, max_length=4, avoid_prefixes=prefixes)
    assert stored == prefixes
    by_input = [[list(ids) for ids in prefixes] for _ in INPUTS]
    assert ids_of(found(model, beam=3, max_length=4, avoid_prefixes=by_input)) == ids_of(expected)
    assert stored == prefixes * 2
    long = [[4] * 5, [5] * 50_000]
    assert ids_of(found(model, beam=3, max_length=4, avoid_prefixes=long)) == ids_of(free)
    assert stored == prefixes * 2, "what is longer than any output is not stored"


def test_a_beam_goes_round_a_dead_end() -> None:
    """All that follows symbol 4 is avoided: hypotheses that begin with it come to nothing, and the others stay."""
    model = build()
    with torch.no_grad():
        model.head.c[4] = 5.0
    avoided = [[4, symbol] for symbol in (1, *range(3, 9))]
    for row in found(model, beam=3, n_best=3, avoid_prefixes=avoided):
        assert row
        assert all(one.ids[0] != 4 for one in row)
