"""Samples follow the probabilities, keep to what they may say, and repeat."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from seq2see.search import SearchOptions
from seq2see.search.sampling import BELOW_ONE, Sampler, shaped
from tests.search.helpers import EOS, INPUTS, PAD, SOS, SYMBOLS, build, found, ids_of, stepped

MANY = 4000
ROW = [4, 5, 6]


def first_symbols(**options) -> Counter[int]:
    (row,) = found(build(sharpness=2.0), [ROW], sample=True, n_best=MANY, runners_up=0, **{"max_length": 1, **options})
    return Counter(hypothesis.ids[0] for hypothesis in row)


def first_chances(**options) -> dict[int, float]:
    log_probs, _ = stepped(build(sharpness=2.0), ROW, [EOS])
    log_probs[0, [PAD, SOS]] = -torch.inf
    logits = shaped(log_probs.numpy(), SearchOptions(sample=True, **options))[0]
    chances = np.exp(logits) / np.exp(logits).sum()
    return {symbol: chance for symbol, chance in enumerate(chances.tolist()) if chance > 0}


def chi_square(seen: Counter[int], chances: dict[int, float]) -> float:
    return sum((seen[symbol] - MANY * chance) ** 2 / (MANY * chance) for symbol, chance in chances.items())


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.5}, {"temperature": 3.0}, {"top_k": 3}, {"top_p": 0.8}], ids=str
)
def test_frequencies_match_probabilities(options: dict[str, float]) -> None:
    """Chi-square with at most 6 degrees of freedom: above 22.5 once in a thousand seeds, and the seed is fixed."""
    seen, chances = first_symbols(**options), first_chances(**options)
    assert set(seen) <= set(chances)
    assert chi_square(seen, chances) < 22.5


def test_the_test_of_frequencies_can_fail() -> None:
    assert chi_square(first_symbols(), first_chances(temperature=1.5)) > 22.5


def test_second_symbols_follow_the_first() -> None:
    """P(second | first) for the commonest first symbol, from samples of two steps."""
    model = build(sharpness=2.0)
    (row,) = found(model, [ROW], sample=True, n_best=MANY, max_length=2)
    first = Counter(hypothesis.ids[0] for hypothesis in row if hypothesis.ids[0] != EOS).most_common(1)[0][0]
    after = Counter(hypothesis.ids[1] for hypothesis in row if hypothesis.ids[0] == first)
    log_probs, _ = stepped(model, ROW, [first, EOS])
    log_probs[1, [PAD, SOS]] = -torch.inf
    chances, count = torch.softmax(log_probs[1], -1), after.total()
    seen = sum(
        (after[symbol] - count * chances[symbol].item()) ** 2 / (count * chances[symbol].item()) for symbol in after
    )
    assert count > 200
    assert seen < 22.5


def test_top_k_keeps_exactly_the_likeliest() -> None:
    log_probs = torch.log_softmax(torch.randn(5, 20), -1)
    kept = torch.from_numpy(np.isfinite(shaped(log_probs.numpy(), SearchOptions(sample=True, top_k=4))))
    assert kept.sum(-1).tolist() == [4] * 5
    assert (log_probs.masked_fill(~kept, torch.inf).amin(-1) >= log_probs.masked_fill(kept, -torch.inf).amax(-1)).all()


def test_top_k_keeps_k_even_of_equals() -> None:
    assert kept(np.zeros((1, 9)), top_k=4) == 4


def kept(log_probs: np.ndarray, **options) -> int:
    return int(np.isfinite(shaped(log_probs, SearchOptions(sample=True, **options))).sum())


@pytest.mark.parametrize(
    ("share", "number"), [(0.3, 1), (0.49, 1), (0.51, 2), (0.79, 2), (0.81, 3), (0.96, 4), (1.0, 4)]
)
def test_top_p_keeps_the_fewest_that_reach_the_share(share: float, number: int) -> None:
    assert kept(np.log([[0.3, 0.05, 0.5, 0.15]]), top_p=share) == number


def test_top_p_counts_after_temperature_and_top_k() -> None:
    log_probs = np.log([[0.4, 0.3, 0.2, 0.1]])
    assert kept(log_probs, top_p=0.5) == 2
    assert kept(log_probs, top_p=0.5, top_k=2) == 1
    assert kept(log_probs, top_p=0.5, temperature=0.2) == 1


@pytest.mark.parametrize(("drawn", "symbol"), [(0.0, 1), (0.24, 1), (0.26, 3), (0.74, 3), (0.76, 4), (1.0, 4)])
def test_a_number_finds_its_symbol_and_never_a_forbidden_one(drawn: float, symbol: int) -> None:
    """Probabilities 0, 1/4, 0, 1/2, 1/4, 0: even the ends of the range fall on what may be said."""
    draw = Sampler(SearchOptions(sample=True, max_length=1), [0])
    draw._drawn.fill(min(drawn, BELOW_ONE))
    log_probs = torch.tensor([[[0, 0.25, 0, 0.5, 0.25, 0]]]).log().numpy()
    assert draw(log_probs, 0, np.array([0])).item() == symbol


def test_reported_probabilities_are_the_models_own() -> None:
    model = build()
    for hypothesis in found(model, [ROW], sample=True, n_best=5, temperature=0.3, top_k=3)[0]:
        log_probs, _ = stepped(model, ROW, hypothesis.ids)
        assert hypothesis.log_probs == pytest.approx(
            log_probs[range(len(hypothesis.ids)), hypothesis.ids].tolist(), abs=1e-5
        )


def test_same_seed_same_samples_and_another_seed_others() -> None:
    model = build(sharpness=2.0)
    one, again, other = (ids_of(found(model, sample=True, n_best=4, seed=seed)) for seed in (7, 7, 8))
    assert one == again != other


def test_equal_inputs_in_different_rows_get_different_samples() -> None:
    results = ids_of(found(build(sharpness=2.0), [ROW] * 6, sample=True))
    assert len({tuple(ids) for (ids,) in results}) > 1


def test_more_samples_and_longer_ones_begin_like_fewer_and_shorter() -> None:
    model = build(sharpness=2.0)
    few, many = (found(model, [ROW], sample=True, n_best=count)[0] for count in (2, 9))
    assert {tuple(hypothesis.ids) for hypothesis in few} <= {tuple(hypothesis.ids) for hypothesis in many}
    short, long = (found(model, sample=True, max_length=length) for length in (3, 9))
    assert [row[0].ids for row in short] == [row[0].ids[:3] for row in long]


def test_pad_and_sos_are_never_said_even_by_a_model_that_likes_them() -> None:
    model = build()
    with torch.no_grad():
        model.head.c[[PAD, SOS]] = 50.0
    modes = [{}, {"beam": 4, "n_best": 4}, {"sample": True, "n_best": 4}]
    said = {symbol for mode in modes for row in found(model, INPUTS, **mode) for one in row for symbol in one.ids}
    assert said <= set(range(SYMBOLS)) - {PAD, SOS}
    assert len(said) > 2
