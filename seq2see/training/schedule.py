"""The learning rate over a run: a pure function of how much of the run is done, so that resuming needs no state."""

from __future__ import annotations

import math

from seq2see.errors import UserError
from seq2see.recipe.schema import TrainingSettings


def has_end(settings: TrainingSettings) -> bool:
    return bool(settings.epochs or settings.updates or settings.minutes)


def check_schedule(settings: TrainingSettings) -> None:
    if not has_end(settings) and settings.schedule not in ("constant", "plateau"):
        raise UserError(
            f"training.schedule: {settings.schedule} needs an end of the run: set training.epochs, updates or minutes, "
            "or use constant or plateau"
        )
    if not has_end(settings) and not settings.patience:
        raise UserError("training: without epochs, updates, minutes or patience a run has no end; set one of them")


def done(settings: TrainingSettings, *, epochs: float, updates: int, seconds: float) -> float:
    """Share of the run that is done, by whichever limit is nearest."""
    shares = [0.0]
    if settings.epochs:
        shares.append(epochs / settings.epochs)
    if settings.updates:
        shares.append(updates / settings.updates)
    if settings.minutes:
        shares.append(seconds / (60 * settings.minutes))
    return max(shares)


def factor(settings: TrainingSettings, share: float) -> float:
    """What the learning rate is multiplied with when `share` of the run is done.

    >>> factor(TrainingSettings(schedule="linear", warmup=0.1, floor=0.0), 0.55)
    0.5
    """
    if settings.warmup and share < settings.warmup:
        # never quite zero: the first update should not be in vain
        return max(share / settings.warmup, 1e-3)
    left = min(max((share - settings.warmup) / (1 - settings.warmup), 0.0), 1.0)
    low = settings.floor
    if settings.schedule == "linear":
        return low + (1 - low) * (1 - left)
    if settings.schedule == "cosine":
        return low + (1 - low) * (1 + math.cos(math.pi * left)) / 2
    if settings.schedule == "inverse-sqrt":
        start = settings.warmup or 0.01
        return max(math.sqrt(start / max(share, start)), low)
    return 1.0
