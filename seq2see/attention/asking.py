"""A score is asked here, and here alone: what one that the house did not write gives is checked, and said of it."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.attention.records import Candidates
from seq2see.attention.scores import Score, name_of
from seq2see.errors import UserError


def keys_of(score: Score, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
    """What the score makes of the places, once per input."""
    keys: Any = score.keys(states)
    if not isinstance(keys, Tensor) or keys.ndim != 3 or keys.shape[:2] != states.shape[:2]:
        wanted = f"(batch, places, size) = ({states.shape[0]}, {states.shape[1]}, any size)"
        raise UserError(f"{_said(score)}: keys are {wanted}, got {_shape(keys)}")
    made: Tensor = keys
    return made


def energies_of(
    score: Score, query: Float[Tensor, "batch queries query"], candidates: Candidates
) -> Float[Tensor, "batch queries places"]:
    """The energies of the candidates. A score of the user's own may not make NaN of numbers: no update could mend it.

    Minus infinity is a place it does not want; plus infinity leaves nothing to share, as NaN does.
    """
    energies: Any = score(query, candidates)
    wanted = (*query.shape[:2], candidates.keys.shape[1])
    if not isinstance(energies, Tensor) or energies.shape != wanted or not energies.is_floating_point():
        raise UserError(
            f"{_said(score)}: energies are numbers (batch, queries, places) = {wanted}, got {_shape(energies)}"
        )
    if _foreign(score) and not bool((energies < torch.inf).all()) and _finite(query) and _finite(candidates.keys):
        raise UserError(
            f"{_said(score)}: its energies are NaN or infinite, though query and keys are numbers "
            "(where an input is padded, keys are those of zeros)"
        )
    made: Tensor = energies
    return made


def _foreign(score: Score) -> bool:
    return type(score).__module__.partition(".")[0] != "seq2see"


def _finite(numbers: Tensor) -> bool:
    return bool(numbers.isfinite().all())


def _said(score: Score) -> str:
    return f"the score '{name_of(score)}' ({type(score).__name__})"


def _shape(given: object) -> str:
    if not isinstance(given, Tensor):
        return type(given).__name__
    return f"{tuple(given.shape)}{'' if given.is_floating_point() else f' of {given.dtype}'}"
