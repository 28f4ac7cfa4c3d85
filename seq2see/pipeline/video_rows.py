"""Rows whose videos run backwards: what a model makes of them tells whether it goes by the order of frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from seq2see.data.columns import OUTPUT, Values
from seq2see.errors import UserError
from seq2see.modalities.label import BACKWARD
from seq2see.modalities.video import turned
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.scoring import Row
from seq2see.recipe.schema import Recipe


def backwards(bundle: Bundle, rows: Sequence[Row]) -> list[Row]:
    """The same rows, every video read from its end to its beginning."""
    if bundle.recipe.made:
        raise UserError("--reverse: no meaning here: the model tells directions, and is measured both ways as it is")
    if not bundle.recipe.videos:
        raise UserError("--reverse: no meaning here: the model reads no videos, which alone can be read backwards")
    return [turned_row(bundle.recipe, row) for row in rows]


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
