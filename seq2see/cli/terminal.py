"""Results to stdout, messages and progress to stderr."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from shutil import which
from typing import Any, TextIO

from seq2see.files import SURROGATES, finite

# ---------------- Results to stdout, words about them to stderr


def say(message: str) -> None:
    """A line for the person, out of the way of results."""
    print(message, file=sys.stderr, flush=True)


def emit(record: dict[str, Any]) -> None:
    """One JSON object on one line; infinity, which JSON has not, is null. Bytes that are no text (in a name of a file)
    are halves of surrogate pairs in Python, which JSON spells out."""
    line = json.dumps(finite(record), ensure_ascii=False, allow_nan=False)
    print(SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", line), flush=True)


# ---------------- How far a long command is

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


# ---------------- What the user has to type to call this program

NAME = "seq2see"


def program() -> str:
    """`seq2see` where the shell finds it; otherwise the way this process was called (`.venv/bin/seq2see`)."""
    called = Path(sys.argv[0])
    if which(NAME) is not None:
        return NAME
    if called.name == "__main__.py" and called.parent.name == NAME:
        return f"{sys.executable} -m {NAME}"
    return str(called) if called.name == NAME else NAME


def typed(line: str) -> str:
    """A line that begins with `seq2see`, as it has to be typed here."""
    return f"{program()}{line.removeprefix(NAME)}"
