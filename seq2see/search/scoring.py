"""What a search ranks by: log-probability per length, and how much of the input was looked at."""

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
"""The least total a place counts as having got: one never looked at (oracle weights) costs much, not everything."""

Number = TypeVar("Number", float, Tensor)


def normalised(log_probability: Number, length: int, options: SearchOptions) -> Number:
    """log_probability / length ** penalty, the length counting `<eos>`."""
    return log_probability / float(length**options.length_penalty)


def best_attainable(log_probability: Tensor, options: SearchOptions) -> Tensor:
    """No continuation scores higher: every further symbol had probability 1, and the output grew as long as it may.

    The coverage penalty is at most 0, so it cannot lift a score above this either.
    """
    return normalised(log_probability, options.max_length, options)


def covered(total: Float[Tensor, "*rows places"], mask: Bool[Tensor, "*#rows places"]) -> Float[Tensor, "*rows"]:
    """sum_j log(min(sum_t a_tj, 1)) over real places: 0 where each got a whole look in total, below 0 elsewhere."""
    return (total.clamp(OVERLOOKED, 1.0).log() * mask).sum(-1)


def coverage_penalty_of(totals: dict[str, Tensor], masks: dict[str, Tensor], options: SearchOptions) -> Tensor:
    """The coverage penalty of all inputs that are looked at, to be added to a score."""
    parts = [covered(total, masks[name]) for name, total in totals.items()]
    return options.coverage_penalty * torch.stack(parts).sum(0)


# ---------------- How much each place has been looked at so far, for hypotheses whose score counts what ...


class Coverage:
    """Sums the looks of every hypothesis of a beam; does nothing where the coverage penalty is 0."""

    def __init__(self, places: Mapping[str, JointPlaces], options: SearchOptions):
        self._options = options
        self._masks = {name: joint.mask for name, joint in places.items() if not joint.lower}
        self._sums: dict[str, Tensor] = {}

    def look(
        self, looks: Mapping[str, Float[Tensor, "rows *heads _"]], inputs: Int[Tensor, " inputs"]
    ) -> Float[Tensor, "inputs slots"] | Float[Tensor, ""]:
        """Add this step's looks, of heads their mean; the penalty (0 or below) of each hypothesis that may end here."""
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
        """Go on from these hypotheses."""
        for name, total in self._sums.items():
            self._sums[name] = total.flatten(0, 1)[rows].view(-1, total.shape[1], total.shape[2])


def check_coverage(places: Mapping[str, JointPlaces], options: SearchOptions) -> None:
    """A penalty on what was overlooked needs a model that looks, and an ensemble that looks at the same places."""
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
