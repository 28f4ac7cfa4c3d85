"""Rows whose videos run backwards: what a model makes of them tells whether it goes by the order of frames."""

from __future__ import annotations

from collections.abc import Sequence

from seq2see.data.video import VideoField, turned
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.scoring import Row


def backwards(bundle: Bundle, rows: Sequence[Row]) -> list[Row]:
    """The same rows, every video read from its end to its beginning."""
    videos = [name for name, field in bundle.fields.inputs.items() if isinstance(field, VideoField)]
    if not videos:
        raise UserError("--reverse: no meaning here: the model reads no videos, which alone can be read backwards")
    return [{**row, **{name: turned(row[name]) for name in videos}} for row in rows]
