"""The output most like the others: against a transcription of its definition, and in the search itself."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.search import SearchOptions, search
from seq2see.search.run import by_agreement, phrases_of, similarity
from tests.search.helpers import build, padded


def f1(one: list[int], other: list[int], length: int) -> float | None:
    """Over phrases of one length; None where neither has any."""
    mine, theirs = (Counter(tuple(ids[i : i + length]) for i in range(len(ids) - length + 1)) for ids in (one, other))
    if not mine and not theirs:
        return None
    return 2 * sum(min(mine[phrase], theirs[phrase]) for phrase in mine) / (sum(mine.values()) + sum(theirs.values()))


def test_similarity_is_the_mean_f1_of_phrases() -> None:
    draw = torch.Generator().manual_seed(1)
    for _ in range(30):
        one, other = (
            torch.randint(4, 7, (int(torch.randint(1, 7, (1,), generator=draw)),), generator=draw) for _ in "ab"
        )
        shares = [f1(one.tolist(), other.tolist(), length) for length in (1, 2, 3, 4)]
        known = [share for share in shares if share is not None]
        found = similarity(phrases_of(one.tolist()), phrases_of(other.tolist()))
        assert found == pytest.approx(sum(known) / len(known))


@pytest.mark.parametrize("consensus", [0.5, 4.0])
def test_the_beam_is_ranked_by_what_its_outputs_share(consensus: float) -> None:
    model, inputs = build(seed=3), padded([[4, 5, 6], [7, 8, 9]])
    plain = search([(model, inputs)], [0, 1], SearchOptions(beam=6, n_best=6, max_length=5))
    agreed = search([(model, inputs)], [0, 1], SearchOptions(beam=6, n_best=6, max_length=5, consensus=consensus))
    first = search([(model, inputs)], [0, 1], SearchOptions(beam=6, n_best=1, max_length=5, consensus=consensus))
    for before, after, (best,) in zip(plain, agreed, first, strict=True):
        finished = [one for one in before if one.finished]
        weights = [math.exp(one.log_probability / consensus) for one in before]

        def risk(ids: list[int], known: list[tuple[float, list[int]]]) -> float:
            return sum(weight * similarity(phrases_of(ids), phrases_of(other)) for weight, other in known)

        known = list(zip(weights, (one.ids for one in before), strict=True))
        expected = max(finished or before, key=lambda one: risk(one.ids, known))
        assert after[0].ids == expected.ids == best.ids
        assert sorted(one.ids for one in before) == sorted(one.ids for one in after)


def test_one_that_stands_alone_gives_way() -> None:
    (found,) = search([(build(seed=3), padded([[4, 5, 6]]))], [0], SearchOptions(beam=4, n_best=4, max_length=4))
    alone, *others = found
    alone.ids, alone.log_probability = [9, 9, 9], -1.0
    for number, other in enumerate(others):
        other.ids, other.log_probability, other.finished = [4, 5, 6 + number], -1.1, alone.finished
    assert by_agreement(found, 1.0)[0].ids != [9, 9, 9]
    assert by_agreement(found, 0.01)[0].ids == [9, 9, 9]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="consensus must be a number from 0 to 100, got -1"):
        SearchOptions(beam=2, consensus=-1)
    with pytest.raises(UserError, match=r"search\.consensus: has no effect here: search\.beam 1"):
        load_recipe("translation", overrides=["search.beam=1", "search.consensus=2"])
