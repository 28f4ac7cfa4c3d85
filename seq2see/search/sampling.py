"""Sampling: symbols drawn from the model's distribution, the same for an input whatever batch it is in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.search.options import SearchOptions

BELOW_ONE = 1 - 1e-12


class Sampler:
    """Chooses the symbol where the cumulative probability passes a random number.

    The random numbers are drawn beforehand, from a generator seeded by (seed, row, sample) alone: a sample does not
    depend on the batch, on the number of samples or on the maximum length.
    """

    def __init__(self, options: SearchOptions, rows: Sequence[int], *, device: torch.device):
        self._options = options
        drawn = [
            [
                np.random.default_rng([options.seed, row, sample]).random(options.max_length)
                for sample in range(options.n_best)
            ]
            for row in rows
        ]
        self._drawn = torch.from_numpy(np.array(drawn)).clamp(max=BELOW_ONE).to(device)

    def __call__(
        self, log_probs: Float[Tensor, "inputs width symbols"], step: int, inputs: Int[Tensor, " inputs"]
    ) -> Int[Tensor, "inputs width"]:
        kept = shaped(log_probs, self._options)
        running = torch.softmax(kept.double(), -1).cumsum(-1)
        sought = self._drawn[inputs, :, step, None] * running[..., -1:]
        return torch.searchsorted(running, sought, right=True).squeeze(-1)


def shaped(log_probs: Float[Tensor, "*rows symbols"], options: SearchOptions) -> Float[Tensor, "*rows symbols"]:
    """The logits to sample from: divided by the temperature, then cut to the `top_k` likeliest, then to the nucleus."""
    logits = log_probs / options.temperature
    if 0 < options.top_k < logits.shape[-1]:
        best = logits.topk(options.top_k, dim=-1)
        logits = torch.full_like(logits, -torch.inf).scatter(-1, best.indices, best.values)
    if options.top_p < 1:
        logits = _nucleus(logits, options.top_p)
    return logits


def _nucleus(logits: Float[Tensor, "*rows symbols"], share: float) -> Float[Tensor, "*rows symbols"]:
    """The smallest set of likeliest symbols whose probabilities reach the share (nucleus sampling)."""
    ordered = logits.sort(dim=-1, descending=True)
    probabilities = torch.softmax(ordered.values.double(), -1)
    before = probabilities.cumsum(-1) - probabilities
    cut = ordered.values.masked_fill(before >= share, -torch.inf)
    return torch.empty_like(logits).scatter(-1, ordered.indices, cut)
