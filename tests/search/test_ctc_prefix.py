"""Prefixes read along the places: against all alignments, one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from seq2see.data.vocabulary import BLANK, EOS, SOS
from seq2see.errors import UserError
from seq2see.search import SearchOptions, search
from seq2see.search.ctc_prefix import CtcPrefixScorer
from tests.search.helpers import build, padded

SYMBOLS = 7
SPOKEN = [1, *range(4, SYMBOLS)]


def made(places: int, *, seed: int = 0) -> torch.Tensor:
    """log P at the places of one line; `<sos>` and `<eos>` are never read."""
    torch.manual_seed(seed)
    logits = 2 * torch.randn(1, places, SYMBOLS, dtype=torch.float64)
    logits[..., [SOS, EOS]] = -torch.inf
    return logits.log_softmax(-1)


def merged(alignment: tuple[int, ...]) -> tuple[int, ...]:
    """What an alignment says: repetitions merged, blanks dropped."""
    return tuple(symbol for symbol, _ in itertools.groupby(alignment) if symbol != BLANK)


def by_enumeration(line: torch.Tensor) -> dict[tuple[int, ...], float]:
    """P of every output, summed over its alignments."""
    found: dict[tuple[int, ...], float] = {}
    for alignment in itertools.product([BLANK, *SPOKEN], repeat=line.shape[1]):
        chance = math.exp(sum(float(line[0, j, z]) for j, z in enumerate(alignment)))
        found[merged(alignment)] = found.get(merged(alignment), 0.0) + chance
    return found


@pytest.mark.parametrize("prefix", [(), (4,), (4, 4), (4, 5), (5, 4, 6)])
def test_prefixes_have_the_probability_of_all_that_begins_with_them(prefix: tuple[int, ...]) -> None:
    line = made(4)
    outputs = by_enumeration(line)

    def begins(with_: tuple[int, ...]) -> float:
        return sum(chance for output, chance in outputs.items() if output[: len(with_)] == with_)

    along = CtcPrefixScorer.begin(line.numpy(), np.ones((1, 4), dtype=bool), width=1)
    for symbol in (SOS, *prefix):
        along = along.read(np.array([symbol]))
    found = np.exp(along.log_probs()[0])
    for symbol in SPOKEN:
        assert float(found[symbol]) == pytest.approx(begins((*prefix, symbol)) / begins(prefix), abs=1e-9)
    assert float(found[EOS]) == pytest.approx(outputs.get(prefix, 0.0) / begins(prefix), abs=1e-9)
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-9)


def test_what_follows_the_last_place_does_not_count() -> None:
    short, long = made(3, seed=1), made(6, seed=2)
    both = torch.cat([torch.cat([short, made(3, seed=3)], 1), long])
    mask = np.array([[True] * 3 + [False] * 3, [True] * 6])
    alone = CtcPrefixScorer.begin(short.numpy(), mask[:1, :3], width=2)
    beside = CtcPrefixScorer.begin(both.numpy(), mask, width=2)
    for symbol in (5, 4):
        alone = alone.read(np.array([symbol, 6]))
        beside = beside.read(np.array([symbol, 6, 4, 4]))
        np.testing.assert_allclose(np.exp(beside.log_probs()[:2]), np.exp(alone.log_probs()), atol=1e-9)


def test_hypotheses_and_inputs_are_chosen_together() -> None:
    line = torch.cat([made(4, seed=1), made(4, seed=2)])
    along = CtcPrefixScorer.begin(line.numpy(), np.ones((2, 4), dtype=bool), width=2).read(np.array([4, 5, 4, 6]))
    kept = along.select(np.array([3, 2])).compact(np.array([1]))
    np.testing.assert_array_equal(kept.log_probs(), along.log_probs()[[3, 2]])


def test_more_symbols_than_places_are_no_matter_for_the_line() -> None:
    along = CtcPrefixScorer.begin(made(2).numpy(), np.ones((1, 2), dtype=bool), width=1)
    for symbol in (4, 5, 6):
        along = along.read(np.array([symbol]))
    assert along.log_probs().tolist() == [[0.0] * SYMBOLS]


ROWS = [[4, 5, 6, 7, 8], [9, 4], [], [10, 5, 5, 6, 9]]


@pytest.mark.parametrize("options", [{}, {"beam": 3, "n_best": 3}], ids=["greedy", "beam"])
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_an_input_is_read_along_alike_alone_and_in_a_batch(options: dict[str, int], share: float) -> None:
    model = build(ctc=1.0)
    chosen = SearchOptions(max_length=6, ctc=share, **options)  # type: ignore[arg-type]
    together = search([(model, padded(ROWS))], range(len(ROWS)), chosen)
    alone = [search([(model, padded([row]))], [0], chosen)[0] for row in ROWS]
    for one, other in zip(together, alone, strict=True):
        assert [hypothesis.ids for hypothesis in one] == [hypothesis.ids for hypothesis in other]
        for first, second in zip(one, other, strict=True):
            assert first.log_probs == pytest.approx(second.log_probs, abs=1e-4)
    decoder = search([(model, padded(ROWS))], range(len(ROWS)), SearchOptions(max_length=6, **options))  # type: ignore[arg-type]
    assert [one[0].log_probs for one in decoder] != [one[0].log_probs for one in together], "the line has no say"


def test_a_model_that_was_not_taught_to_read_along_cannot() -> None:
    with pytest.raises(UserError, match=r"ctc 0\.3: this model was trained without loss\.ctc"):
        search([(build(), padded(ROWS))], range(len(ROWS)), SearchOptions(ctc=0.3))
    with pytest.raises(UserError, match="ctc is a share from 0 to 1, got 2"):
        SearchOptions(ctc=2)
