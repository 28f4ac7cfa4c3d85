"""What the user has to type to call this program: for hints that can be copied."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import which

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
