"""Scales of colour: which weight gets the strongest one."""

from __future__ import annotations

from seq2see.errors import UserError

SCALES = ("auto", "full")
_ROUND = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def round_top(largest: float, *, scale: str = "auto") -> float:
    """The weight that gets the strongest colour: 1, or where the largest never comes near it the next round number.

    Spread over a hundred places, weights stay below 0.1, and on a scale up to 1 such a map would be blank.

    >>> round_top(0.013), round_top(0.7), round_top(0.013, scale="full")
    (0.02, 1.0, 1.0)
    """
    if scale not in SCALES:
        raise UserError(f"unknown scale '{scale}'; allowed: {', '.join(SCALES)}")
    if scale == "full" or largest > _ROUND[-1]:
        return max(1.0, largest)
    return next(step for step in _ROUND if largest <= step)
