"""Greedy search: one symbol is chosen at each step, the likeliest or (in `sampling.py`) a drawn one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.data.batches import EOS, SOS
from seq2see.search.constraints import Constraints, Oracle
from seq2see.search.hypotheses import Endings, History
from seq2see.search.stepper import Stepper

Choose = Callable[[Tensor, int, Tensor], Tensor]
"""(log_probs (inputs, width, symbols), -inf where forbidden; step; numbers of the inputs) -> ids (inputs, width)."""


def search_greedily(
    stepper: Stepper,
    history: History,
    choose: Choose,
    *,
    allowed: Constraints,
    oracle: Oracle,
    width: int,
    max_length: int,
) -> Endings:
    """The endings of `width` outputs for each input; an input leaves the batch when all its outputs have ended."""
    device = stepper.device
    inputs = torch.arange(history.rows, device=device)
    slots = torch.arange(width, device=device)
    ends = torch.full((history.rows, width), max_length, device=device)
    tokens = torch.full((history.rows * width,), SOS, device=device)
    stepper.begin(width)
    for step in range(max_length):
        raw, looks = stepper.step(tokens, oracle.at(step, inputs, width=width))
        log_probs: Float[Tensor, "inputs width symbols"] = raw.view(len(inputs), width, -1)
        chosen: Int[Tensor, "inputs width"] = choose(allowed.forbid(log_probs.clone(), step, inputs), step, inputs)
        parents = slots.expand_as(chosen)
        history.add(inputs, tokens=chosen, parents=parents, carried=parents, log_probs=log_probs, looks=looks)
        ends[inputs] = torch.where(chosen == EOS, ends[inputs].clamp(max=step), ends[inputs])
        going = (ends[inputs] > step).any(1)
        if not going.any():
            break
        tokens = chosen[going].flatten()
        if not going.all():
            stepper.compact(going.nonzero().squeeze(1))
            inputs = inputs[going]
    finished = ends < max_length
    rows = torch.arange(history.rows, device=device)[:, None].expand_as(ends)
    last = ends.clamp(max=max_length - 1)
    return Endings(rows.flatten(), last.flatten(), slots.expand_as(ends).flatten(), finished.flatten())


def likeliest(
    log_probs: Float[Tensor, "inputs width symbols"], step: int, inputs: Int[Tensor, " inputs"]
) -> Int[Tensor, "inputs width"]:
    """The choice of greedy search."""
    return log_probs.argmax(-1)
