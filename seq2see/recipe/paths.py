"""Encoders' settings by the key they stand under: the recipe's own, which several inputs may share, and theirs."""

from __future__ import annotations

from seq2see.recipe.schema import Recipe
from seq2see.settings.encoders import EncoderSettings


def read_by(recipe: Recipe) -> dict[str, list[str]]:
    """{path: the inputs that are read by the encoder whose settings stand there}"""
    found: dict[str, list[str]] = {}
    for name in recipe.inputs:
        if recipe.reader_of(name) in recipe.inputs:
            found.setdefault(recipe.encoder_path(name), []).append(name)
    return found


def put(recipe: Recipe, path: str, settings: EncoderSettings) -> Recipe:
    """The recipe with those settings at `encoder`, or at `inputs.NAME.encoder`."""
    if path == "encoder":
        return recipe.model_copy(update={"encoder": settings})
    name = path.split(".")[1]
    changed = recipe.inputs[name].model_copy(update={"encoder": settings})
    return recipe.model_copy(update={"inputs": {**recipe.inputs, name: changed}})
