"""Sounds brought to another rate: sinc interpolation under a Kaiser window, phase by phase."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

ZEROS = 32
"""Zero crossings of the sinc to each side ..."""
ROLLOFF = 0.92
"""... whose cutoff lies so far below the lower rate's half that the filter has closed there ..."""
BETA = 7.86
"""... to about 80 dB, by the shape of the window (Kaiser's formula)."""

MOST_WEIGHTS = 1_000_000
"""Weights of the filters for one pair of rates. A rate of 192,001 would ask for ten times as many, to be used once."""


def resampled(samples: Samples, rate: int, wanted: int) -> Samples:
    """The same sound at another rate: y(n) = sum_k x(k) g(n / wanted - k / rate), g the windowed sinc.

    The lower of the two rates says where frequencies end, so that nothing is folded back. Rates that would ask for too
    many filters are taken for the nearest that do not, less than a ten-thousandth away.

    >>> len(resampled(np.zeros(441, dtype=np.float32), 44_100, 16_000))
    160
    """
    if rate == wanted or not len(samples):
        return samples
    down, up = _steps(rate, wanted)
    bank, half = _bank(up, down)
    number = -(-len(samples) * wanted // rate)
    behind = number * down // up + half + 1 - len(samples)
    padded = np.pad(samples, (half, max(behind, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half)
    made = np.empty(number, dtype=np.float32)
    for phase in range(min(up, number)):
        count = len(range(phase, number, up))
        first = phase * down // up + 1
        made[phase::up] = windows[first : first + (count - 1) * down + 1 : down] @ bank[phase]
    return made


def _steps(rate: int, wanted: int) -> tuple[int, int]:
    """(down, up): that many samples become so many.

    >>> _steps(44_100, 16_000), _steps(192_001, 16_000)
    ((441, 160), (12, 1))
    """
    most = max(MOST_WEIGHTS // (2 * _half(wanted / rate)), 1)
    return Fraction(rate, wanted).limit_denominator(most).as_integer_ratio()


def _half(ratio: float) -> int:
    """Samples to each side that a filter reaches, for rates of that ratio."""
    return ceil(ZEROS / (ROLLOFF * min(ratio, 1.0)))


@lru_cache(maxsize=64)
def _bank(up: int, down: int) -> tuple[NDArray[np.float32], int]:
    """(weights (phases, taps), half of the taps): output n lies at n * down / up samples of the input, so that there
    are `up` ways in which it can lie between two of them."""
    cutoff = ROLLOFF * min(up / down, 1.0)
    half = _half(up / down)
    beyond = (np.arange(up) * down % up) / up
    distance = np.arange(1 - half, half + 1) - beyond[:, None]
    window = np.i0(BETA * np.sqrt(np.clip(1 - (distance / half) ** 2, 0, None))) / np.i0(BETA)
    weights = np.sinc(cutoff * distance) * window
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32), half
