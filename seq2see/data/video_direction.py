"""Clips read from their end to their beginning: how a value says so, and rows that come both ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from seq2see.data.columns import OUTPUT, Values
from seq2see.recipe.output_settings import BACKWARD
from seq2see.recipe.schema import Recipe

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


def turned_row(recipe: Recipe, row: Mapping[str, str], **changes: str) -> Mapping[str, str]:
    """The same row, all its videos read the other way; changes: further values that become others by that."""
    values = {**row, **{name: turned(row[name]) for name in recipe.videos}, **changes}
    if not isinstance(row, Values):
        return values
    written = {name: turned(path) if name in recipe.videos else path for name, path in row.written.items()}
    return Values(values, row.table, row.line, written=written)


def both_ways(recipe: Recipe, rows: Iterable[Mapping[str, str]]) -> Iterator[Mapping[str, str]]:
    """Rows as they are learned from and measured on. Where the direction is what is asked for, each comes twice: as it
    was filmed, and right behind it backwards.

    Rows are doubled once they are split, so that no clip is learned from one way and measured the other.
    """
    for row in rows:
        yield row
        if recipe.made == "direction":
            yield turned_row(recipe, row, **{OUTPUT: BACKWARD})
