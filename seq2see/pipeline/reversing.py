"""Rows whose videos run backwards: what a model makes of them tells whether it goes by the order of frames."""

from __future__ import annotations

from collections.abc import Sequence

from seq2see.data.video_direction import turned_row
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.scoring import Row


def backwards(bundle: Bundle, rows: Sequence[Row]) -> list[Row]:
    """The same rows, every video read from its end to its beginning."""
    if bundle.recipe.made:
        raise UserError("--reverse: no meaning here: the model tells directions, and is measured both ways as it is")
    if not bundle.recipe.videos:
        raise UserError("--reverse: no meaning here: the model reads no videos, which alone can be read backwards")
    return [turned_row(bundle.recipe, row) for row in rows]
