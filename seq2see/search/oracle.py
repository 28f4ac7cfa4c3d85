"""Oracle attention: weights that the caller gives for some steps, from which the decoder continues."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from seq2see.errors import UserError, counted, nearest
from seq2see.search.hypotheses import JointPlaces
from seq2see.search.options import Real, Weights

TOLERANCE = 1e-3
"""How far from 1 the sum of weights may be, since people round numbers."""


class Oracle:
    """The caller's weights by step: {input name: (batch, places)}, NaN in rows that are free, zeros at padding."""

    def __init__(
        self,
        weights: Weights | Sequence[Weights] | None,
        places: Mapping[str, JointPlaces],
        *,
        rows: int,
        max_length: int,
    ):
        self._steps: dict[int, dict[str, Tensor]] = {}
        for row, steps in enumerate(_per_row(weights, rows)):
            for step, maps in steps.items():
                if not 0 <= step < max_length:
                    raise UserError(f"oracle: step {step}; allowed: 0 to {max_length - 1} (max_length {max_length})")
                for name, look in maps.items():
                    self._place(step, name, places, row=row, weights=look)

    def at(self, step: int, inputs: Int[Tensor, " inputs"], *, width: int) -> dict[str, Float[Tensor, "rows _"]] | None:
        """The weights at this step for `width` hypotheses of each input (by its number in the whole batch), if any."""
        if step not in self._steps:
            return None
        return {name: rows[inputs].repeat_interleave(width, 0) for name, rows in self._steps[step].items()}

    def _place(
        self,
        step: int,
        name: str,
        places: Mapping[str, JointPlaces],
        *,
        row: int,
        weights: Sequence[Real] | NDArray[Any],
    ) -> None:
        where = f"oracle of input {row}, step {step}"
        if not places:
            raise UserError(f"{where}: this model has no attention, so there are no weights to hand in")
        if name not in places:
            raise UserError(f"{where}: '{name}' is not looked at{nearest(name, places)}; allowed: {', '.join(places)}")
        if not places[name].agreed[row]:
            raise UserError(f"{where}: the models of the ensemble see different places in '{name}'")
        mask = places[name].mask
        real = int(mask[row].sum())
        if len(weights) != real:
            raise UserError(
                f"{where}: {counted(len(weights), 'weight')} for '{name}', which has {counted(real, 'place')}"
            )
        wrong = [weight for weight in weights if not 0 <= weight <= 1 + TOLERANCE]
        if wrong:
            raise UserError(f"{where}: the weights for '{name}' must be numbers from 0 to 1, got {wrong[0]}")
        total = math.fsum(weights)
        if real and abs(total - 1) > TOLERANCE:
            raise UserError(f"{where}: the weights for '{name}' must sum to 1, got {total:g}")
        maps = self._steps.setdefault(step, {})
        if name not in maps:
            maps[name] = torch.full(mask.shape, torch.nan, device=mask.device)
        maps[name][row] = 0.0
        maps[name][row, mask[row]] = torch.as_tensor(weights, dtype=torch.float32, device=mask.device)


def _per_row(weights: Weights | Sequence[Weights] | None, rows: int) -> list[Weights]:
    if weights is None:
        return []
    if isinstance(weights, Mapping):
        return [weights] * rows
    if len(weights) != rows:
        raise UserError(f"one oracle for each input is needed: {rows} inputs, {len(weights)} oracles")
    return list(weights)
