"""Threads of the processor: how many a process uses, and how they wait for each other. Used before torch is imported.

OpenMP's threads spin for milliseconds at the end of each product before they sleep. On a machine that does nothing else
this saves microseconds; two trainings side by side take each other's turns, and each becomes four to seventy times
slower. A short spin costs one alone a few percent and leaves each of two its share (`benchmarks/side_by_side.py`).
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

COUNT = "OMP_NUM_THREADS"
"""The variable by which users of OpenMP programs, torch among them, set the number of threads."""
WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""Turns of a waiting thread before it sleeps: GNU's OpenMP, which torch brings on Linux; milliseconds of Intel's."""
MOST = 8
"""Threads that are used unless more are asked for: products of models this small are not divided further at a gain."""


def configure(threads: int | None = None) -> None:
    """Set the number of threads and how they wait, in this process and those it starts.

    threads: how many; None: OMP_NUM_THREADS, or as many as this process has cores (at most `MOST`). What the user has
    set in the environment stays. Once torch is imported only a number that is asked for can still be set.
    """
    if "torch" in sys.modules:
        if threads is not None:
            sys.modules["torch"].set_num_threads(threads)
        return
    for name, value in WAITING.items():
        if "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault(name, value)
    if threads is not None:
        os.environ[COUNT] = str(threads)
    else:
        os.environ.setdefault(COUNT, str(min(cores(), MOST)))


def cores(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: those it is bound to, and no more than its container's share of time pays for.

    root: where the kernel shows the limits of the container.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = _share(root)
    return bound if share is None else max(1, min(bound, math.ceil(share)))


def _share(root: Path) -> float | None:
    """Cores' worth of time that the container may use; None: no limit."""
    try:
        if (root / "cpu.max").is_file():
            quota, period = (root / "cpu.max").read_text("ascii").split()[:2]
        else:
            quota, period = ((root / "cpu" / f"cpu.cfs_{name}_us").read_text("ascii") for name in ("quota", "period"))
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
