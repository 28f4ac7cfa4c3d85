"""What users hand in from Python, as the text that a table would hold."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seq2see.data.columns import Joined, joined
from seq2see.errors import UserError, counted
from seq2see.files import whole_characters
from seq2see.modalities.base import Field
from seq2see.modalities.files import MediaField
from seq2see.modalities.vector import VectorField
from seq2see.pipeline.fields import Fields


def row_of(given: Any, fields: Fields, lists: Mapping[str, Joined]) -> dict[str, str]:
    """An input as a row by the recipe's names; lists: what makes one text of those that may be given as lists."""
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
    row = {name: as_text(name, given[name], lists.get(name)) for name in names}
    row = {name: _characters(name, text, fields.inputs[name]) for name, text in row.items()}
    _check_numbers(row, fields)
    return row


def rows_of_text(rows: Sequence[Mapping[str, str]], fields: Fields) -> list[Mapping[str, str]]:
    """Rows that were handed in with their outputs, each text without halves of surrogate pairs."""
    known = fields.all
    return [
        {
            name: _characters(name, text, known[name]) if name in known and isinstance(text, str) else text
            for name, text in row.items()
        }
        for row in rows
    ]


def _characters(name: str, text: str, field: Field) -> str:
    """Text without halves of surrogate pairs. In the path of a file they stand for bytes that are no text, and stay."""
    if not isinstance(field, MediaField):
        return whole_characters(text)
    try:
        if b"\0" not in os.fsencode(field.file(text)):
            return text
    except UnicodeEncodeError:
        pass
    raise UserError(f"input '{name}': {text!r} is not the path of a file")


def _check_numbers(row: Mapping[str, str], fields: Fields) -> None:
    """Refuse rows of numbers that the model does not read: too few, too many, or none."""
    for name, text in row.items():
        field = fields.inputs[name]
        problem = field.problem(text) if isinstance(field, VectorField) and text.strip() else None
        if problem is not None:
            raise UserError(f"input '{name}': {problem}")


def as_text(name: str, value: Any, by: Joined | None) -> str:
    """A value as text; a list of texts where sentences, utterances or elements may be given one by one."""
    if isinstance(value, str):
        return value
    if by is None:
        raise UserError(f"input '{name}': expected text, got {type(value).__name__}")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence):
        raise UserError(f"input '{name}': expected text, or a list of texts or numbers, got {value!r}")
    try:
        return joined(value, by)
    except UserError as error:
        raise UserError(f"input '{name}': {error}") from None
