"""Models for commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.api import Model


def one_model(given: str, command: str, *, on_error: str | None = None) -> Model:
    """A single model, for what has no meaning for an ensemble."""
    if "+" in given and not Path(given).is_dir():
        raise UserError(f"{given}: {command} takes one model, not several joined by +")
    return reading(given, on_error)


def reading(given: str, on_error: str | None) -> Model:
    """A model that reads tables as `--on-error` says; None: as its recipe says."""
    from seq2see.api import load

    model = load(given)
    if on_error is not None:
        for bundle in model.bundles:
            data = bundle.recipe.data.model_copy(update={"on_error": on_error})
            bundle.recipe = bundle.recipe.model_copy(update={"data": data})
    return model
