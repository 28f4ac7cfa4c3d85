"""Timing on a shared, noisy machine: the ways to be compared take turns, and their medians are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

torch.set_num_threads(1)


def medians(ways: Mapping[str, Callable[[], object]], *, rounds: int = 15, warm_up: int = 2) -> dict[str, float]:
    """Median seconds of each way; one call of each per round, so that a slow spell of the machine hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(warm_up + rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if number >= warm_up:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(measured) for name, measured in times.items()}


def least(ways: Mapping[str, Callable[[], object]], *, rounds: int = 7, warm_up: int = 1) -> dict[str, float]:
    """Fewest processor seconds of each way, taking turns: what the work itself needs on a busy machine."""
    best = dict.fromkeys(ways, float("inf"))
    for number in range(warm_up + rounds):
        for name, way in ways.items():
            start = time.process_time()
            way()
            if number >= warm_up:
                best[name] = min(best[name], time.process_time() - start)
    return best
