"""Greedy search: one symbol is chosen at each step, the likeliest or (in `sampling.py`) a drawn one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from seq2see.data.vocabulary import EOS, SOS
from seq2see.search.constraints import Constraints, Oracle
from seq2see.search.hypotheses import Endings, History
from seq2see.search.language_model import Fusion
from seq2see.search.stepper import Stepper, step_top
from seq2see.search.top import likeliest, pick

Choose = Callable[[ndarray, int, ndarray], ndarray]
"""(log_probs (inputs, width, symbols), -inf where forbidden; step; numbers of the inputs) -> ids (inputs, width)."""


def search_greedily(
    stepper: Stepper,
    history: History,
    choose: Choose | None,
    *,
    allowed: Constraints,
    oracle: Oracle,
    width: int,
    max_length: int,
    fusion: Fusion | None = None,
) -> Endings:
    """The endings of `width` outputs for each input; an input leaves the batch when all its outputs have ended.

    choose: None takes the likeliest symbol.
    """
    fusion = fusion if fusion is not None else Fusion()
    chosen: Int[ndarray, "inputs width"]
    inputs, slots = np.arange(history.rows), np.arange(width)
    ends = np.full((history.rows, width), max_length)
    tokens = np.full(history.rows * width, SOS)
    every = np.tile(slots, (history.rows, 1))
    stepper.begin(width)
    fusion.begin(width)
    allowed.begin(width)
    for step in range(max_length):
        forced, added = oracle.at(step, inputs, width=width), None
        if choose is None and not fusion and not allowed.avoids and allowed.forced(step, inputs) is None:
            never = allowed.never(step)
            best, looks = step_top(stepper, tokens, max(history.runners_up, 1) + len(never), forced)
            at = best.without(never).argmax(1)[:, None]
            chosen, values = (pick(part, at).reshape(-1, width) for part in (best.ids, best.log_probs))
        else:
            raw, looks = stepper.step(tokens, forced)
            best, log_probs = likeliest(raw, history.runners_up), raw.reshape(len(inputs), width, -1)
            scores = log_probs.copy()
            if fusion:
                added = fusion.step(tokens).reshape(scores.shape)
                scores += added
            rest = allowed.forbid(scores, step, inputs)
            allowed.check_possible(rest, inputs)
            chosen = rest.argmax(-1) if choose is None else choose(rest, step, inputs)
            added = None if added is None else np.take_along_axis(added, chosen[..., None], 2)[..., 0]
            values = np.take_along_axis(log_probs, chosen[..., None], 2)[..., 0]
        parents = every[: len(inputs)]
        history.add(
            inputs,
            tokens=chosen,
            parents=parents,
            carried=parents,
            log_probs=values,
            likeliest=best.first(history.runners_up),
            looks=looks,
            added=added,
        )
        tokens = chosen.reshape(-1)
        allowed.follow(tokens)
        ended = chosen == EOS
        if not ended.any():
            continue
        ends[inputs] = np.where(ended, np.minimum(ends[inputs], step), ends[inputs])
        going = (ends[inputs] > step).any(1)
        if not going.any():
            break
        if not going.all():
            tokens = chosen[going].reshape(-1)
            kept = np.flatnonzero(going)
            rows = (kept[:, None] * width + slots).reshape(-1)
            stepper.select(rows, kept)
            fusion.select(rows, kept)
            allowed.select(rows)
            inputs = inputs[going]
    finished = ends < max_length
    rows = np.broadcast_to(np.arange(history.rows)[:, None], ends.shape)
    last = np.minimum(ends, max_length - 1)
    return Endings(rows.reshape(-1), last.reshape(-1), np.tile(slots, history.rows), finished.reshape(-1))
