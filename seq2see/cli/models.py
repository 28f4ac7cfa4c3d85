"""Models for commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.api import Model


def one_model(given: str, command: str) -> Model:
    """A single model, for what has no meaning for an ensemble."""
    if "+" in given and not Path(given).is_dir():
        raise UserError(f"{given}: {command} takes one model, not several joined by +")
    from seq2see.api import load

    return load(given)
