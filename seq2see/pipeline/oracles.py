"""The caller's attention as a caller gives it: read before the search, and compared with what came of it after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seq2see.errors import UserError, counted
from seq2see.looks import Prediction

Oracle = dict[int, dict[str, list[float]]]


def read_oracle(given: Any, looked_at: Sequence[str]) -> Oracle:
    """{step: weights}, or {step: {input: weights}}, as the search wants it; what weights may be is for it to say.

    >>> read_oracle({3: [0, 1]}, ["source"])
    {3: {'source': [0.0, 1.0]}}
    """
    if not looked_at:
        raise UserError("oracle: this model has no attention to set")
    if not isinstance(given, Mapping):
        raise UserError(f"oracle: expected {{step: weights}}, got {given!r}")
    found: Oracle = {}
    for step, weights in given.items():
        number = _step(step)
        maps = weights if isinstance(weights, Mapping) else {looked_at[0]: weights}
        found[number] = {name: _numbers(values, step=number) for name, values in maps.items()}
    return found


def unreached(oracle: Oracle, predictions: Sequence[Prediction]) -> list[str]:
    """A line for each step whose weights were never used, since all hypotheses of an input had ended before it."""
    lengths = [max(len(one.tokens), *(len(other.tokens) for other in one.alternatives), 0) for one in predictions]
    found = []
    for step in sorted(oracle):
        short = [length for length in lengths if length <= step]
        if not short:
            continue
        where = f"the output has {counted(lengths[0], 'step')}, counted from 0"
        if len(lengths) > 1:
            where = (
                f"{len(short):,} of {counted(len(lengths), 'output')} {'ends' if len(short) == 1 else 'end'} before it"
            )
        found.append(f"oracle: step {step} is not reached: {where}")
    return found


def _step(given: Any) -> int:
    try:
        number = int(given)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0 or number != float(given):
        raise UserError(f"oracle: step {given!r}; steps are whole numbers, counted from 0")
    return number


def _numbers(given: Any, *, step: int) -> list[float]:
    try:
        return [float(weight) for weight in given]
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"oracle: step {step}: expected a list of numbers, one for each place, got {given!r}") from None
