"""The short form of `make fuzz`: some hundred cases of a fixed seed, and proof that a failure is found and told."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import TextIO

import pytest

from tests.fuzz.__main__ import Result, follow
from tests.fuzz.chunks import REDUCED, run_chunk
from tests.fuzz.requests import requests
from tests.fuzz.targets import TARGETS

CASES = {
    **dict.fromkeys(("recipe-texts", "recipe-settings", "overrides"), 20),
    **dict.fromkeys(("tables", "vectors", "images", "sounds", "series"), 50),
    "videos": 15,
}
"""Folders of models have their own short form in tests/hostile."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_few_cases(tmp_path: Path, name: str) -> None:
    counted = run_chunk(name, TARGETS[name].prepare(tmp_path), seed=7, chunk=0, cases=CASES[name])
    assert counted.failures == {}
    assert counted.accepted + counted.refused == CASES[name]
    assert counted.refused


@pytest.mark.filterwarnings("ignore")
def test_a_few_requests(tmp_path: Path) -> None:
    counted = run_chunk("requests", requests(tmp_path, kinds=("word",)), seed=7, chunk=0, cases=80)
    assert counted.failures == {}
    assert counted.accepted
    assert counted.refused


def test_shares_are_those_of_a_thousand() -> None:
    assert sum(target.share for target in TARGETS.values()) == 1000


@pytest.mark.parametrize("chunk", [0, REDUCED - 1], ids=["plain", "hypothesis"])
def test_a_failure_is_told_with_its_place_and_repeats(chunk: int) -> None:
    def check(draw: random.Random) -> bool:
        if draw.randrange(20) > 15:
            raise KeyError("found")
        return bool(draw.randrange(2))

    first, second = (run_chunk("x", check, seed=3, chunk=chunk, cases=100) for _ in range(2))
    assert len(first.failures) == 1
    assert "KeyError: 'found'" in next(iter(first.failures.values()))
    assert first == second
    assert first != run_chunk("x", check, seed=4, chunk=chunk, cases=100) or chunk


def _die(how: signal.Signals, told: TextIO) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    told.write('{"accepted": 3, "refused": 2, "seconds": 1.5, "memory": 7, "failures": {}}\n')
    told.flush()
    os.kill(os.getpid(), how)
    time.sleep(60)


@pytest.mark.parametrize(("how", "said"), [(signal.SIGTERM, "-15"), (signal.SIGPROF, "processor time")])
def test_a_process_that_dies_is_a_failure_of_its_chunk(how: signal.Signals, said: str) -> None:
    result = Result("x")
    done, problem = follow(partial(_die, how), result)
    assert (done, result.cases) == (1, 5)
    assert said in problem
