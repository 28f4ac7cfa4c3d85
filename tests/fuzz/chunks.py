"""Runs a chunk of cases of one target: most by plain random numbers, some under hypothesis.

Plain cases cost half as much and each differs from all others. hypothesis prefers values at the edges, and reduces a
case that fails to few changes.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Check = Callable[[random.Random], bool]
"""One case, made of random choices: True if it was accepted, False if it was refused as promised; all else raises."""
CHUNK = 250
"""Cases that share a seed: what has to be run again to repeat a failure."""
REDUCED = 10
"""One chunk in so many runs under hypothesis."""


@dataclass
class Counted:
    """What became of the cases of a chunk; failures: the first of each place in the code, by that place."""

    accepted: int = 0
    refused: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, check: Check, draw: random.Random) -> None:
        if check(draw):
            self.accepted += 1
        else:
            self.refused += 1

    def note(self, error: BaseException, where: str) -> None:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/hypothesis/" not in frame.filename]
        place = f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
        text = "".join([*traceback.format_list(frames), f"{type(error).__name__}: {str(error)[:1000]}\n"])
        self.failures.setdefault(place, f"{where}\n{text}")


def run_chunk(
    name: str,
    check: Check,
    *,
    seed: int,
    chunk: int,
    cases: int = CHUNK,
    before: Callable[[], object] = lambda: None,
) -> Counted:
    """Check so many cases. before: called before each."""
    counted = Counted()
    if chunk % REDUCED == REDUCED - 1:
        _run_reduced(f"{name}:{seed}:{chunk}", check, counted, cases, before)
        return counted
    for number in range(cases):
        before()
        try:
            counted.run(check, random.Random(f"{name}:{seed}:{chunk}:{number}"))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            counted.note(error, f"case {number} of the chunk")
    return counted


def _run_reduced(seed: str, check: Check, counted: Counted, cases: int, before: Callable[[], object]) -> None:
    @hypothesis.seed(seed)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,  # by processor time, in the process around it
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    @given(st.randoms(use_true_random=False))
    def case(draw: random.Random) -> None:
        before()
        counted.run(check, draw)

    try:
        case()
    except Exception as error:  # noqa: BLE001 - see above
        for one in error.exceptions if isinstance(error, ExceptionGroup) else [error]:
            counted.note(one, "a case that hypothesis has reduced")
