"""How far a long command is: one line of a terminal, written over and wiped away at the end."""

from __future__ import annotations

import sys
import time
from typing import TextIO

EVERY = 0.2
"""Seconds between two states of the line."""
WIPE = "\r\x1b[2K"


class Meter:
    """Says how many are done, how fast, and how long the rest will take; silent where stderr is no terminal."""

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.stream.isatty()
        self._what, self._done = "", 0
        self._begun = self._last = 0.0

    def __call__(self, what: str, done: int, total: int | None = None) -> None:
        """So many of `what` ("rows scored") are done, of so many where that is known. Other work starts a new count."""
        if not self.live:
            return
        now = time.monotonic()
        if what != self._what or done < self._done:
            self._what, self._begun, self._last = what, now, 0.0
        self._done = done
        if now - self._last < EVERY:
            return
        self._last = now
        self.stream.write(WIPE + _line(what, done, total, now - self._begun))
        self.stream.flush()

    def close(self) -> None:
        if self.live and self._what:
            self.stream.write(WIPE)
            self.stream.flush()


def _line(what: str, done: int, total: int | None, seconds: float) -> str:
    from seq2see.training.progress import remaining

    noun, *_ = what.split()
    speed = f"  {done / seconds:,.0f} {noun}/s" if seconds > 0 else ""
    if total is None:
        return f"{done:,} {what}{speed}"
    return f"{done:,} of {total:,} {what}{speed}{remaining(done / max(total, 1), seconds)}"
