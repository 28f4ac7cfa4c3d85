"""Damaged copies of files, drawn at random: whatever is in a file, what comes of it must be an error message."""

from __future__ import annotations

import random

EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
"""Numbers on which programs that count bytes stumble."""


def mutate(content: bytes, draw: random.Random, *, others: list[bytes] | None = None) -> bytes:
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
    del made[where : where + draw.randrange(1, 32)]


def _repeat(made: bytearray, draw: random.Random) -> None:
    where = _place(made, draw)
    piece = made[where : where + draw.randrange(1, 64)]
    made[where:where] = piece * draw.choice((1, 2, 50))


def _zeros(made: bytearray, draw: random.Random) -> None:
    where, length = _place(made, draw), draw.randrange(1, 64)
    made[where : where + length] = bytes(length)


CHANGES = (_flip, _flip, _byte, _byte, _number, _number, _number, _cut, _remove, _repeat, _zeros)
