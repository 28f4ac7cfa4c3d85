"""Results to stdout, words about them to stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def say(message: str) -> None:
    """A line for the person, out of the way of results."""
    print(message, file=sys.stderr, flush=True)


def emit(record: dict[str, Any]) -> None:
    """One JSON object on one line; infinity, which JSON has not, is null."""
    print(json.dumps(_finite(record), ensure_ascii=False, allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
