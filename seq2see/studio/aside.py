"""Work that would hold up everybody: the loop that serves all clients does what is small, a thread what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

Made = TypeVar("Made")

CHARACTERS, BYTES = 2000, 1 << 16
"""Texts that are split, and JSON that is read, in about a millisecond; a thread costs a part of that itself."""


async def aside(work: Callable[[], Made], *, large: bool) -> Made:
    """What the work makes, by a thread where it is large."""
    return await asyncio.to_thread(work) if large else work()


def long(rows: Iterable[Mapping[str, str]]) -> bool:
    """Whether splitting these rows into symbols takes long."""
    return sum(len(value) for row in rows for value in row.values()) > CHARACTERS
