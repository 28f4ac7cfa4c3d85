"""Output: results to stdout, messages and progress to stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import which
from typing import Any

from seq2see.files import SURROGATES, finite


def say(message: str) -> None:
    """Print a message to stderr."""
    print(message, file=sys.stderr, flush=True)


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object on one line.

    Infinities and NaN become null. File names that are not valid text contain surrogates, which are escaped.
    """
    line = json.dumps(finite(record), ensure_ascii=False, allow_nan=False)
    print(SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", line), flush=True)


NAME = "seq2see"


def program() -> str:
    """`seq2see` if the shell finds it; otherwise the way this process was called (`.venv/bin/seq2see`)."""
    called = Path(sys.argv[0])
    if which(NAME) is not None:
        return NAME
    if called.name == "__main__.py" and called.parent.name == NAME:
        return f"{sys.executable} -m {NAME}"
    return str(called) if called.name == NAME else NAME


def as_typed(line: str) -> str:
    """A line that begins with `seq2see`, as it has to be typed here."""
    return f"{program()}{line.removeprefix(NAME)}"
