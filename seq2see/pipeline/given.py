"""What users hand in, from Python, as the text that a table would hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seq2see.data.columns import Joined, joined
from seq2see.data.fields import Fields
from seq2see.data.vector import VectorField
from seq2see.errors import UserError, counted


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
    _check_numbers(row, fields)
    return row


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
