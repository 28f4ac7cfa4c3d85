"""Clips read from their end to their beginning: how a value says so, and rows that come both ways."""

from __future__ import annotations

BACKWARDS = "\0backwards"
"""Behind a path: the clip from its end to its beginning. No path of a file has such a character in it."""


def forwards(value: str) -> str:
    """The path of a clip, whichever way it is read.

    >>> forwards("a.mp4" + BACKWARDS), forwards("a.mp4")
    ('a.mp4', 'a.mp4')
    """
    return value.removesuffix(BACKWARDS)


def turned(value: str) -> str:
    """The same clip read the other way.

    >>> turned(turned("a.mp4"))
    'a.mp4'
    """
    return value.removesuffix(BACKWARDS) if value.endswith(BACKWARDS) else value + BACKWARDS


def named(value: str) -> str:
    """A value for a person to read.

    >>> named(turned("a.mp4")), named("a.mp4")
    ('a.mp4 (backwards)', 'a.mp4')
    """
    return f"{forwards(value)} (backwards)" if value.endswith(BACKWARDS) else value
