"""Results to stdout, messages and progress to stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import which
from typing import Any

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
