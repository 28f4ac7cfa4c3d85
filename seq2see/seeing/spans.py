"""When places that lie in time begin and end."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

_SECONDS = re.compile(r"(\d+(?:\.\d+)?) ?s")


def edges_of(names: Sequence[str], seconds: float) -> Float[np.ndarray, " edges"]:
    """Where places begin, and where the last one ends: by their names where these are seconds; otherwise all places
    last equally long.

    >>> edges_of(["0.00 s", "0.40 s"], 0.6).tolist(), edges_of(["1", "2"], 0.6).tolist()
    ([0.0, 0.4, 0.6], [0.0, 0.3, 0.6])
    """
    starts = seconds_of(names)
    if starts is None or starts[-1] >= seconds:
        return np.linspace(0, seconds, len(names) + 1)
    return np.append(starts, seconds)


def seconds_of(names: Sequence[str]) -> Float[np.ndarray, " names"] | None:
    """Names as seconds, where all of them are and none comes before the one it follows."""
    found = [_SECONDS.fullmatch(name) for name in names]
    if not all(found):
        return None
    times = np.array([float(match[1]) for match in found if match])
    return times if (np.diff(times) >= 0).all() else None
