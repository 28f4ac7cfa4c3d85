"""Files and settings changed at random, by a seed: bytes, lines, values and keys that somebody might send."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

from seq2see.errors import UserError

SEED = int(os.environ.get("SEQ2SEE_FUZZ_SEED", "2"))
"""Of the long runs (`make slow`): another one gives other files."""

EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
"""Numbers on which programs that count bytes stumble."""
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


def mutate_bytes(content: bytes, draw: random.Random, *, others: Sequence[bytes] = ()) -> bytes:
    """A copy with one to eight changes; others: files of which pieces may be put in."""
    made = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        if not made:
            break
        draw.choice(CHANGES)(made, draw)
    if others and draw.random() < 0.1:
        other = draw.choice(others)
        start, where = draw.randrange(len(other)), draw.randrange(len(made) + 1)
        made[where : where + draw.randrange(64)] = other[start : start + draw.randrange(1, 256)]
    return bytes(made)


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


# ---------------------------------------------------------------- changes of bytes


def _place(made: bytearray, draw: random.Random) -> int:
    """Anywhere, rather in the head, where most of what steers a decoder stands."""
    return draw.randrange(len(made) if draw.random() < 0.5 else min(len(made), 128))


def _flip(made: bytearray, draw: random.Random) -> None:
    made[_place(made, draw)] ^= 1 << draw.randrange(8)


def _byte(made: bytearray, draw: random.Random) -> None:
    made[_place(made, draw)] = draw.randrange(256)


def _number(made: bytearray, draw: random.Random) -> None:
    width, order = draw.choice((1, 2, 4)), draw.choice(("big", "little"))
    where, number = _place(made, draw), draw.choice(EXTREMES) & ((1 << 8 * width) - 1)
    made[where : where + width] = number.to_bytes(width, order)  # type: ignore[arg-type]


def _cut(made: bytearray, draw: random.Random) -> None:
    del made[_place(made, draw) :]


def _remove(made: bytearray, draw: random.Random) -> None:
    where = _place(made, draw)
    del made[where : where + draw.choice((1, 2, 8, 64, 1000))]


def _repeat(made: bytearray, draw: random.Random) -> None:
    where = _place(made, draw)
    piece = made[where : where + draw.randrange(1, 64)]
    made[where:where] = piece * draw.choice((1, 2, 50))


def _zeros(made: bytearray, draw: random.Random) -> None:
    where, length = _place(made, draw), draw.randrange(1, 64)
    made[where : where + length] = bytes(length)


def _random(made: bytearray, draw: random.Random) -> None:
    where, length = _place(made, draw), draw.choice((2, 8, 64))
    made[where : where + length] = draw.randbytes(length)


def _text(made: bytearray, draw: random.Random) -> None:
    where = _place(made, draw)
    made[where:where] = draw.choice(TEXTS).encode()


CHANGES = (_flip, _flip, _byte, _number, _number, _cut, _remove, _repeat, _zeros, _random, _text, _text)
