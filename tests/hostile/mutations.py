"""Files and settings changed at random, by a seed: bytes, lines, values and keys that somebody might send."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from seq2see.errors import UserError

TEXTS = [
    "",
    " ",
    "\x00",
    "\n",
    "\t",
    ",",
    '"',
    "'",
    "{",
    "[",
    "*a",
    "&a",
    "!!int",
    "<<",
    "\\",
    "\\ud800",
    "²",
    "-1",
    "0",
]
TEXTS += [
    "9" * 20,
    "9" * 5000,
    "1e999",
    "nan",
    ".inf",
    "null",
    "true",
    "\ufeff",
    "\u2028",
    "😀",
    "a" * 300,
    "%",
    "..",
    "/",
]
VALUES: list[Any] = [None, True, False, 0, 1, -1, 3, 2**31, 2**63, 10**30, 0.5, -0.5, 1e308, float("nan"), float("inf")]
VALUES += [
    "",
    "a",
    "none",
    "text",
    "label",
    "\x00",
    "a" * 500,
    "1_000",
    "1e400",
    "../x",
    "timm:x",
    "plug:in",
    "cuda:99",
]
VALUES += [[], {}, [1], ["a"], [[]], [None], ["a", "a"], {"a": 1}, {1: 2}, {None: 1}, {"kind": []}, {"kind": 5}, b"x"]
VALUES += [{"kind": kind} for kind in ("text", "texts", "set", "image", "sound", "video", "vector", "label", "dense")]
KEYS: list[Any] = ["kind", "encoder", "embedding", "share", "size", "layers", "x", "", "a.b", "a b", "none", 1, None]


def mutate_bytes(content: bytes, draw: random.Random) -> bytes:
    """Some bytes flipped, cut out, repeated or put in."""
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 4])):
        at = draw.randrange(len(changed) + 1)
        end = min(len(changed), at + draw.choice([1, 1, 2, 8, 64, 1000]))
        what = draw.randrange(6)
        if what == 0 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        elif what == 1:
            del changed[at:end]
        elif what == 2:
            changed[at:at] = changed[at:end] * draw.choice([1, 2, 50])
        elif what == 3:
            changed[at:end] = draw.randbytes(end - at)
        elif what == 4:
            changed[at:at] = draw.choice(TEXTS).encode("utf-8")
        else:
            del changed[at:]
    return bytes(changed)


def mutate_settings(settings: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Some values replaced, keys added, taken away or moved elsewhere."""
    settings = copy.deepcopy(settings)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        places = _places(settings)
        if not places:
            return settings
        group, key = draw.choice(places)
        what = draw.randrange(8)
        if what < 5:
            group[key] = copy.deepcopy(draw.choice(VALUES))
        elif what == 5 and isinstance(group, dict):
            group[draw.choice(KEYS)] = copy.deepcopy(draw.choice(VALUES))
        elif what == 6 and isinstance(group, dict):
            del group[key]
        else:
            other, name = draw.choice(places)
            group[key] = copy.deepcopy(other[name])
    return settings


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(group, key) of everything inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in list(pairs) for place in [(value, key), *_places(inner)]]


def survived(action: Callable[[], object]) -> bool:
    """Whether an action ends well; a message for the user is as good an end, anything else fails the test."""
    try:
        action()
    except UserError as error:
        str(error).encode("utf-8")
        return False
    return True
