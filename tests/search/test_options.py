"""Options that cannot work are refused, each with what was given and what is allowed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.search import SearchOptions
from tests.search.helpers import build, found

REFUSED = [
    ({"beam": 0}, "beam must be a number of at least 1, got 0"),
    ({"n_best": 0}, "n_best must be a number of at least 1, got 0"),
    ({"beam": 2, "n_best": 3}, "n_best 3 needs a beam at least as wide, got beam 2"),
    ({"beam": 2, "sample": True}, "sample draws n_best outputs and has no beam; leave beam at 1, got 2"),
    ({"patience": 0.5, "beam": 2}, "patience must be at least 1, got 0.5"),
    ({"patience": 2.0}, "patience 2.0 needs a beam wider than 1"),
    ({"max_length": 0}, "max_length must be a number of at least 1, got 0"),
    ({"min_length": -1}, "min_length must be a number of at least 0, got -1"),
    ({"min_length": 5, "max_length": 4}, "min_length 5 is more than max_length 4"),
    ({"length_penalty": -0.1}, "length_penalty must be a number from 0 to 10, got -0.1"),
    ({"length_penalty": math.nan}, "length_penalty must be a number from 0 to 10, got nan"),
    ({"length_penalty": 1e300}, "length_penalty must be a number from 0 to 10, got 1e+300"),
    ({"coverage_penalty": math.inf}, "coverage_penalty must be a number from 0 to 1,000, got inf"),
    ({"sample": True, "temperature": 0.0}, "temperature must be a number from 0.001 to 1,000, got 0.0"),
    ({"sample": True, "temperature": math.nan}, "temperature must be a number from 0.001 to 1,000, got nan"),
    ({"sample": True, "temperature": 1e-40}, "temperature must be a number from 0.001 to 1,000, got 1e-40"),
    ({"sample": True, "temperature": 1e39}, "temperature must be a number from 0.001 to 1,000, got 1e+39"),
    ({"sample": True, "top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
    ({"sample": True, "top_p": 1.1}, "top_p must be above 0 and at most 1, got 1.1"),
    ({"sample": True, "top_k": -1}, "top_k must be a number of at least 0, got -1"),
    ({"temperature": 0.7}, "temperature 0.7 shapes what is drawn: set sample"),
    ({"top_k": 5, "top_p": 0.9}, "top_k 5, top_p 0.9 shape what is drawn: set sample"),
    ({"seed": -1}, "seed must be a number of at least 0, got -1"),
    ({"runners_up": -1}, "runners_up must be a number of at least 0, got -1"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=lambda one: str(one))
def test_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        SearchOptions(**given)
    assert str(error.value) == message


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UserError, match=r"max_length must.*; beam must.*"):
        SearchOptions(beam=0, max_length=0)


PREFIXES = [
    ([4, 99], "prefix of input 0: token 1 is 99; allowed: ids below 9"),
    ([0], "prefix of input 0: token 0 is 0"),
    ([[4], [2]], "prefix of input 1: token 0 is 2"),
    ([3, 4], "prefix of input 0: token 0 is 3"),
    ([4] * 8, "prefix of input 0: 8 tokens, but max_length is 7"),
    ([[4]], "one prefix for each input is needed: 2 inputs, 1 prefixes"),
]


@pytest.mark.parametrize(("prefix", "message"), PREFIXES, ids=str)
def test_prefixes_that_cannot_be_said(prefix: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        found(build(), [[4, 5], [6]], prefix=prefix)
    assert str(error.value).startswith(message)


ORACLES = [
    ({7: {"source": [1.0, 0.0]}}, "oracle: step 7; allowed: 0 to 6 (max_length 7)"),
    (
        {0: {"sauce": [1.0, 0.0]}},
        "oracle of input 0, step 0: 'sauce' is not looked at (did you mean 'source'?); allowed: source",
    ),
    ({0: {"source": [1.0, 0.0]}}, "oracle of input 1, step 0: 2 weights for 'source', which has 1 place"),
    (
        [{}, {2: {"source": [-1.0]}}],
        "oracle of input 1, step 2: the weights for 'source' must be numbers from 0 to 1, got -1.0",
    ),
    (
        [{}, {2: {"source": [math.nan]}}],
        "oracle of input 1, step 2: the weights for 'source' must be numbers from 0 to 1, got nan",
    ),
    ([{0: {"source": [0.7, 0.7]}}, {}], "oracle of input 0, step 0: the weights for 'source' must sum to 1, got 1.4"),
    ([{}, {2: {"source": [0.0]}}], "oracle of input 1, step 2: the weights for 'source' must sum to 1, got 0"),
    ([{}], "one oracle for each input is needed: 2 inputs, 1 oracles"),
]


@pytest.mark.parametrize(("oracle", "message"), ORACLES, ids=str)
def test_oracles_that_do_not_fit(oracle: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        found(build(), [[4, 5], [6]], oracle=oracle)
    assert str(error.value) == message


def test_an_oracle_needs_attention() -> None:
    with pytest.raises(UserError, match="this model has no attention"):
        found(build(score="none"), [[4, 5]], oracle={0: {"source": [0.5, 0.5]}})


def test_how_outputs_are_ranked_is_said() -> None:
    assert SearchOptions().ranking == "score = log-probability / length, the highest first"
    assert SearchOptions(length_penalty=0, coverage_penalty=2).ranking.startswith(
        "score = log-probability + 2 * coverage,"
    )
    assert "consensus" in SearchOptions(beam=3, consensus=1).ranking
    assert "consensus" not in SearchOptions(consensus=1).ranking, "one hypothesis agrees with nobody"
