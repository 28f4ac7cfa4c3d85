"""What users hand in from Python, as the text that a table would hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seq2see.errors import UserError, counted
from seq2see.modalities.base import Field
from seq2see.pipeline.fields import Fields, Row


def row_of(given: Any, fields: Fields) -> Row:
    """An input as a row by the recipe's names."""
    names = list(fields.inputs)
    if isinstance(given, np.ndarray) and len(names) == 1:
        given = {names[0]: given}
    elif given is None or (given == "" and not names):
        given = {}
    if isinstance(given, str):
        given = {names[0]: given} if len(names) == 1 else (given,)
    elif isinstance(given, Sequence):
        given = tuple(given)
    if isinstance(given, tuple):
        if len(given) != len(names):
            raise UserError(
                f"the model reads {counted(len(names), 'input')} ({', '.join(names) or 'none'}), got {len(given)}"
            )
        given = dict(zip(names, given, strict=True))
    if not isinstance(given, Mapping) or set(given) != set(names):
        got = ", ".join(map(str, given)) if isinstance(given, Mapping) else repr(given)
        raise UserError(f"the model reads the inputs {', '.join(names) or 'none'}, got {got or 'none'}")
    row = {name: as_text(name, given[name], field) for name, field in fields.inputs.items()}
    row = {name: _clean(name, row[name], field) for name, field in fields.inputs.items()}
    for name, field in fields.inputs.items():
        problem = field.problem(row[name]) if not field.settings.file and row[name].strip() else None
        if problem is not None:
            raise UserError(f"input '{name}': {problem}")
    return Row(row)


def rows_of_text(rows: Sequence[Mapping[str, str]], fields: Fields) -> list[Mapping[str, str]]:
    """Rows that were handed in with their outputs, each text without halves of surrogate pairs."""
    known = fields.all
    return [
        {
            name: _clean(name, text, known[name]) if name in known and isinstance(text, str) else text
            for name, text in row.items()
        }
        for row in rows
    ]


def _clean(name: str, value: str, field: Field) -> str:
    try:
        return field.clean(value)
    except UserError as error:
        raise UserError(f"input '{name}': {error}") from None


def as_text(name: str, value: Any, field: Field) -> str:
    """A value as text; a list of texts where sentences, utterances or elements may be given one by one."""
    if isinstance(value, str):
        return value
    if field.elements is None:
        raise UserError(f"input '{name}': expected text, got {type(value).__name__}")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence):
        raise UserError(f"input '{name}': expected text, or a list of texts or numbers, got {value!r}")
    try:
        return field.from_items(value)
    except UserError as error:
        raise UserError(f"input '{name}': {error}") from None
