"""A decoder process for tests: files whose contents say so hang, crash, grow or answer nonsense, others are decoded."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from seq2see.data.decoder_pool import DecoderPool
from seq2see.data.decoder_process import Arrays, decode_file, main
from seq2see.data.media_files import Job

COMMAND = (sys.executable, "-P", "-m", "tests.misbehaving_decoder")


swollen: list[Any] = []


def _spin() -> Arrays:
    while True:
        pass


def _crash() -> Arrays:
    os.kill(os.getpid(), signal.SIGSEGV)
    return []


def _print() -> Arrays:
    os.write(1, b"a library that talks\n" * 100)
    return [np.zeros(1, np.uint8)]


def _swell() -> Arrays:
    swollen.append(np.ones(300_000_000, np.uint8))
    return [np.asarray([os.getpid()])]


def _who() -> Arrays:
    return [np.asarray([os.getpid(), "torch" in sys.modules, "SEQ2SEE_TOKEN" in os.environ])]


MISDEEDS: dict[bytes, Callable[[], Any]] = {
    b"hang": lambda: time.sleep(600),
    b"spin": _spin,
    b"crash": _crash,
    b"exit": lambda: sys.exit(3),
    b"bug": lambda: 1 // 0,
    b"print": _print,
    b"grow": lambda: [np.ones(1 << 33, np.uint8)],
    b"large": lambda: [np.zeros(600_000_000, np.uint8)],
    b"many": lambda: [np.zeros(100, np.uint8)] * 200,
    b"halves": lambda: [np.zeros(800_000, np.uint8)] * 2,
    b"strange": lambda: [np.zeros(2, np.complex128)],
    b"swell": _swell,
    b"who": _who,
}
"""By the contents of a file."""


def misbehave(job: Job) -> Arrays:
    path = Path(job.path)
    content = path.read_bytes() if path.is_file() else b""
    return MISDEEDS[content]() if content in MISDEEDS else decode_file(job)


LIMITS: dict[str, Any] = {
    "processes": 2,
    "memory": 1_500_000_000,
    "seconds": 30.0,
    "queue_size": 512,
    "result_bytes": 500_000_000,
}


def pool(**limits: Any) -> DecoderPool:
    """A pool whose files may misbehave."""
    return DecoderPool(**{**LIMITS, "command": COMMAND, **limits})


if __name__ == "__main__":
    main(misbehave)
