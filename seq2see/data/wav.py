"""WAV files that end before their head says: libsndfile reads what is there and does not mind."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

PLAIN = (0x0001, 0x0003, 0xFFFE)
"""Formats whose samples all take the same number of bytes: whole numbers, floating point, and either of these."""

UNKNOWN = 0x7FFF0000
"""Programs that write to a pipe cannot know how long a sound will be: they say about as much, all ones, or nothing."""


def missing(path: str | Path) -> str | None:
    """What of its samples is there, where a file is cut short: '4,000 of 8,000 samples'; None where it is whole, or no
    WAV file, or does not say."""
    with Path(path).open("rb") as file:
        head = file.read(12)
        if head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
            return None
        found = _chunks(file)
    if found is None:
        return None
    promised, there, block = found
    if there >= promised or not promised:
        return None
    if block:
        return f"{there // block:,} of {promised // block:,} samples"
    return f"{there:,} of {promised:,} bytes"


def _chunks(file: BinaryIO) -> tuple[int, int, int] | None:
    """(bytes of sound that are promised, bytes that are there, bytes of each sample of all channels or 0); None where
    the head does not say."""
    block, whole = 0, None
    while len(head := file.read(8)) == 8:
        name, size = struct.unpack("<4sI", head)
        if name == b"data":
            start = file.tell()
            promised = size if whole is None else whole
            known = whole is not None or 0 < promised < UNKNOWN
            return (promised, file.seek(0, 2) - start, block) if known else None
        body = file.read(size) if size < 1 << 16 else b""
        if name == b"fmt " and len(body) >= 14:
            form, _, _, _, width = struct.unpack("<HHIIH", body[:14])
            block = width if form in PLAIN else 0
        if name == b"ds64" and len(body) >= 16:
            (whole,) = struct.unpack("<Q", body[8:16])
        file.seek((size if not body else 0) + size % 2, 1)
    return None
