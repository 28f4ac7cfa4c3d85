"""Results to stdout, words about them to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any


def say(message: str) -> None:
    """A line for the person, out of the way of results."""
    print(message, file=sys.stderr, flush=True)


def emit(record: dict[str, Any]) -> None:
    """One JSON object on one line."""
    print(json.dumps(record, ensure_ascii=False), flush=True)
