"""How much each place has been looked at so far, for hypotheses whose score counts what they overlook."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.errors import UserError
from seq2see.search.joint import JointPlaces
from seq2see.search.options import SearchOptions
from seq2see.search.scoring import overlooked


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
        return overlooked(self._sums, {name: mask[inputs, None] for name, mask in self._masks.items()}, self._options)

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
