"""Outputs that are numbers: a decoder of one step gives them, and there is nothing to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from seq2see.decoders import Ready, Step
from seq2see.errors import UserError
from seq2see.search.hypothesis import Hypothesis
from seq2see.search.inner import inner_looks
from seq2see.search.joint import JointPlaces, joint_places
from seq2see.search.options import Weights
from seq2see.search.oracle import Oracle
from seq2see.search.run import moved
from seq2see.search.stepper import Source, at_rest


def reconstruct(
    source: Source,
    rows: Sequence[int],
    *,
    oracle: Weights | Sequence[Weights] | None = None,
    device: torch.device | str | None = None,
    maps: bool = False,
) -> list[Hypothesis]:
    """For each input the numbers a model gives, as a hypothesis without ids; its looks, if any, have one row.

    `oracle` may hand in the weights of step 0; maps: also tell heads apart.
    """
    ((model, inputs),) = moved([source], device)
    if not rows:
        return []
    with at_rest([model]):
        ready = model.ready(inputs, len(rows), maps=maps)
        places = joint_places([ready])
        whose = torch.arange(len(rows), device=model.head.device)
        forced = Oracle(oracle, places, rows=len(rows), max_length=1).at(0, whose, width=1)
        step = model.step(ready, model.begin(ready), None, forced=forced or None)
        made = model.numbers(step)
        if not made.isfinite().all():
            raise UserError("what the model gives are not numbers: its weights are damaged, or training diverged")
        return _told(made.cpu(), ready, step, places, maps=maps)


def _told(
    made: torch.Tensor, ready: Ready, step: Step, places: Mapping[str, JointPlaces], *, maps: bool
) -> list[Hypothesis]:
    inner = inner_looks([ready])
    told = []
    for row, numbers in enumerate(made):
        real = {name: places[name].mask[row] for name in step.looks}
        one = Hypothesis([], [], 0.0, 0.0, finished=True, numbers=numbers.numpy(), inner=inner[row])
        one.looks = {name: look.dense()[row : row + 1, real[name]].cpu().numpy() for name, look in step.looks.items()}
        one.layouts = {name: places[name].layout_of(row) for name in step.looks}
        one.places = {name: known[row] for name in step.looks if (known := places[name].tokens) is not None}
        if maps:
            heads = {name: look.by_head()[row][..., real[name]] for name, look in step.looks.items()}
            one.maps = {name: weights[:, None].cpu().numpy() for name, weights in heads.items() if weights.dim() > 1}
        told.append(one)
    return told
