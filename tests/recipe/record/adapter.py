"""The one place where the record meets the product: whoever rewrites how recipes are read changes this file alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.errors import UserError
from seq2see.recipe import left_out, load_recipe, notes, shipped

__all__ = ["Accepted", "UserError", "load", "load_file", "shipped_names"]


@dataclass(frozen=True)
class Accepted:
    """A recipe that is accepted: the whole of it as `recipe.yaml` has it, and what is said about it."""

    dump: dict[str, Any]
    left_out: list[str]
    """A line for each setting that the overrides make meaningless."""
    notes: list[str]
    """What was decided for the user."""


def load(given: str | Mapping[str, Any], overrides: Sequence[str] = (), *, complete: bool = False) -> Accepted:
    """The recipe that ships under that name, or that of a mapping, with overrides; UserError where it is refused.

    complete: as it is read from a model's folder, where nothing may be missing.
    """
    recipe = load_recipe(given, overrides=overrides, complete=complete)
    return Accepted(recipe.to_dict(), left_out(given, overrides) if overrides else [], notes(recipe))


def load_file(text: str, overrides: Sequence[str] = ()) -> Accepted:
    """The same for the text of a file; messages call it `recipe`, wherever it lies."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "given.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            recipe = load_recipe(path, overrides=overrides)
            return Accepted(recipe.to_dict(), left_out(path, overrides) if overrides else [], notes(recipe))
        except UserError as error:
            raise UserError(str(error).replace(str(path), "recipe")) from None


def shipped_names() -> list[str]:
    return list(shipped())
