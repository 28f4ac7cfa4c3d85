"""Scores of hypotheses: log-probability with length normalisation, and the coverage penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.errors import UserError
from seq2see.search.hypotheses import JointPlaces
from seq2see.search.options import SearchOptions

OVERLOOKED = 1e-6
"""The least total weight of a place: one that got none (with oracle weights) costs much, but not infinitely much."""

Number = TypeVar("Number", float, Tensor)


def normalised(log_probability: Number, length: int, options: SearchOptions) -> Number:
    """log_probability / length ** penalty, the length counting `<eos>`."""
    return log_probability / float(length**options.length_penalty)


def best_attainable(log_probability: Tensor, options: SearchOptions) -> Tensor:
    """The highest score of any continuation: all further symbols have probability 1, up to the maximum length.

    The coverage penalty is at most 0, so it cannot raise a score above this.
    """
    return normalised(log_probability, options.max_length, options)


def covered(total: Float[Tensor, "*rows places"], mask: Bool[Tensor, "*#rows places"]) -> Float[Tensor, "*rows"]:
    """sum_j log(min(sum_t a_tj, 1)) over real places: 0 where each got a total weight of 1, below 0 otherwise."""
    return (total.clamp(OVERLOOKED, 1.0).log() * mask).sum(-1)


def coverage_penalty_of(totals: dict[str, Tensor], masks: dict[str, Tensor], options: SearchOptions) -> Tensor:
    """The coverage penalty over all inputs that are attended to, to be added to a score."""
    parts = [covered(total, masks[name]) for name, total in totals.items()]
    return options.coverage_penalty * torch.stack(parts).sum(0)


class Coverage:
    """The sums of looks of every hypothesis of a beam; does nothing where the coverage penalty is 0."""

    def __init__(self, places: Mapping[str, JointPlaces], options: SearchOptions):
        self._options = options
        self._masks = {name: joint.mask for name, joint in places.items() if not joint.lower}
        self._sums: dict[str, Tensor] = {}

    def look(
        self, looks: Mapping[str, Float[Tensor, "rows *heads _"]], inputs: Int[Tensor, " inputs"]
    ) -> Float[Tensor, "inputs slots"] | Float[Tensor, ""]:
        """Add the looks of a step (the mean over heads) and return the penalty of each hypothesis, 0 or below."""
        if self._options.coverage_penalty == 0:
            return torch.zeros((), device=inputs.device)
        for name in self._masks:
            weights = looks[name] if looks[name].dim() == 2 else looks[name].mean(1)
            now = weights.view(len(inputs), -1, weights.shape[-1])
            self._sums[name] = now + self._sums[name] if name in self._sums else now
        return coverage_penalty_of(
            self._sums, {name: mask[inputs, None] for name, mask in self._masks.items()}, self._options
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Continue with these hypotheses."""
        for name, total in self._sums.items():
            self._sums[name] = total.flatten(0, 1)[rows].view(-1, total.shape[1], total.shape[2])


def check_coverage(places: Mapping[str, JointPlaces], options: SearchOptions) -> None:
    """Refuse a coverage penalty for a model without attention, or for an ensemble with different places."""
    if options.coverage_penalty == 0:
        return
    if not places:
        raise UserError(
            f"coverage_penalty {options.coverage_penalty} needs a model with attention; this one has none: set it to 0"
        )
    for name, joint in places.items():
        if not joint.agreed.all():
            raise UserError(
                f"coverage_penalty {options.coverage_penalty} needs models that see the same places in '{name}'; "
                f"the models of this ensemble cut input {int(joint.agreed.long().argmin())} differently: set it to 0"
            )
