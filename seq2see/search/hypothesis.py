"""One output a search has found, with all that can be told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class InnerLook:
    """Where an encoder itself looked: weights (rows, places), or (heads, rows, places).

    inputs: the symbols of the places, asking: those of the rows, as far as they are known; layout: how the places lie.
    """

    weights: NDArray[np.float32]
    layout: dict[str, Any]
    inputs: list[str]
    asking: list[str]


@dataclass
class Hypothesis:
    """ids: the output's symbols, the last one `<eos>` where it is finished (or the one label).

    log_probs: one per id, log P(y_t | y_<t, x); log_probability: their sum; score: what the search ranked by;
    runners_up: for each id the likeliest symbols of its step as (id, probability), best first;
    looks: {input name: (steps, places)}, a row for each id, a column for each real place;
    maps: the same looks told apart, where that was asked for: (heads, steps, places) by input, and by `name.layer-1`
    those of the layers below the last;
    places: {input name: the symbols that stand at those places}, where the encoder knows them; layouts: how they lie;
    inner: where the encoder looked while it read, whatever the output;
    inward: where the decoder looked at what it had read of this very output, by layer: (heads, steps, steps), a row for
    each symbol it read, `<sos>` first;
    words: what the ids beyond the vocabulary stand for, where words of the input can be copied;
    forced: how many of the ids were given by the caller;
    numbers: the output itself where it is made of numbers: it has no ids and no probability then.
    """

    ids: list[int]
    log_probs: list[float]
    log_probability: float
    score: float
    finished: bool
    runners_up: list[list[tuple[int, float]]] = field(default_factory=list)
    looks: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    maps: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    inner: dict[str, InnerLook] = field(default_factory=dict)
    inward: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    forced: int = 0
    numbers: NDArray[np.floating] | None = None
