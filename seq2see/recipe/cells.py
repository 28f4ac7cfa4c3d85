"""The same recipe with another recurrent cell wherever it has one."""

from __future__ import annotations

from typing import Any

from seq2see.cells import cells
from seq2see.errors import UserError
from seq2see.recipe.load import load_recipe
from seq2see.recipe.schema import Recipe


def with_cell(recipe: Recipe, cell: str) -> Recipe:
    """Every recurrent part of a recipe with that cell; options that it has not fall back.

    >>> from seq2see.recipe import load_recipe
    >>> with_cell(load_recipe("translation"), "lstm").decoder.cell
    'lstm'
    """
    told = recipe.to_dict()
    parts = [one.get("encoder") or told.get("encoder") or {} for one in told["inputs"].values()]
    parts += [part["recurrent"] for part in parts if isinstance(part.get("recurrent"), dict)]
    recurrent = [part for part in parts if _has_cells(part)]
    if told["decoder"].get("kind") == "recurrent":
        recurrent.append(told["decoder"])
    if not recurrent:
        raise UserError("the recipe has no recurrent cell: neither its encoders nor its decoder read step by step")
    for part in recurrent:
        _replaced(part, cell)
    return load_recipe(told)


def _has_cells(part: dict[str, Any]) -> bool:
    """Whether an encoder's cell is built: it may be switched off, and levels of self-attention have none."""
    if part.get("kind") == "hierarchical" and "recurrent" not in part["levels"]:
        return False
    return "cell" in part and part.get("over_time", "recurrent") == "recurrent"


def _replaced(part: dict[str, Any], cell: str) -> None:
    known = cells.settings[cell].model_fields
    for option in cells.settings[part["cell"]].model_fields:
        if option not in known:
            part.pop(option, None)
    part["cell"] = cell
