"""Sampling: symbols drawn from the model's distribution, the same for an input whatever batch it is in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from seq2see.search.options import SearchOptions

BELOW_ONE = 1 - 1e-12


class Sampler:
    """Chooses the symbol where the cumulative probability passes a random number.

    The random numbers are drawn beforehand, from a generator seeded by (seed, row, sample) alone: a sample does not
    depend on the batch, on the number of samples or on the maximum length.
    """

    def __init__(self, options: SearchOptions, rows: Sequence[int]):
        self._options = options
        drawn = [
            [
                np.random.default_rng([options.seed, row, sample]).random(options.max_length)
                for sample in range(options.n_best)
            ]
            for row in rows
        ]
        self._drawn = np.minimum(drawn, BELOW_ONE)

    def __call__(
        self, log_probs: Float[ndarray, "inputs width symbols"], step: int, inputs: Int[ndarray, " inputs"]
    ) -> Int[ndarray, "inputs width"]:
        kept = shaped(log_probs, self._options)
        running = _softmax(kept).cumsum(-1)
        sought = self._drawn[inputs, :, step, None] * running[..., -1:]
        return np.asarray((running <= sought).sum(-1))


def shaped(log_probs: Float[ndarray, "*rows symbols"], options: SearchOptions) -> Float[ndarray, "*rows symbols"]:
    """The logits to sample from: divided by the temperature, then cut to the `top_k` likeliest, then to the nucleus."""
    logits = log_probs / options.temperature
    if 0 < options.top_k < logits.shape[-1]:
        best = np.argpartition(logits, -options.top_k, axis=-1)[..., -options.top_k :]
        cut = np.full_like(logits, -np.inf)
        np.put_along_axis(cut, best, np.take_along_axis(logits, best, -1), -1)
        logits = cut
    if options.top_p < 1:
        logits = _nucleus(logits, options.top_p)
    return np.asarray(logits)


def _nucleus(logits: Float[ndarray, "*rows symbols"], share: float) -> Float[ndarray, "*rows symbols"]:
    """The smallest set of likeliest symbols whose probabilities reach the share (nucleus sampling)."""
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, -1)
    probabilities = _softmax(ordered)
    before = probabilities.cumsum(-1) - probabilities
    cut = np.empty_like(logits)
    np.put_along_axis(cut, order, np.where(before >= share, -np.inf, ordered), -1)
    return cut


def _softmax(logits: Float[ndarray, "*rows symbols"]) -> Float[ndarray, "*rows symbols"]:
    """In double precision."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(-1, keepdims=True))
