"""Resampling: sounds brought to another rate by libsoxr."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import imported

Samples = NDArray[np.float32]


def resample(samples: Samples, rate: int, wanted: int) -> Samples:
    """The same sound at another rate, ceil(samples * wanted / rate) samples long.

    The filter closes below half of the lower rate, so that nothing is folded back (no aliasing).

    >>> len(resample(np.zeros(441, dtype=np.float32), 44_100, 16_000))
    160
    """
    if rate == wanted or not len(samples):
        return samples
    length = -(-len(samples) * wanted // rate)
    converted = imported("soxr", extra="sound").resample(samples, rate, wanted, quality="HQ")[:length]
    return np.pad(converted, (0, length - len(converted))).astype(np.float32, copy=False)
