"""Results to stdout, words about them to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from seq2see.files import SURROGATES
from seq2see.pipeline.plain import finite


def say(message: str) -> None:
    """A line for the person, out of the way of results."""
    print(message, file=sys.stderr, flush=True)


def emit(record: dict[str, Any]) -> None:
    """One JSON object on one line; infinity, which JSON has not, is null. Bytes that are no text (in a name of a file)
    are halves of surrogate pairs in Python, which JSON spells out."""
    line = json.dumps(finite(record), ensure_ascii=False, allow_nan=False)
    print(SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", line), flush=True)
