"""The recipe: a task in five answers (data, encoder, attention and decoder, loss, training)."""

from __future__ import annotations

from seq2see.recipe.load import FORMAT, left_out, load_recipe, notes, shipped, to_yaml
from seq2see.recipe.schema import Recipe

__all__ = ["FORMAT", "Recipe", "left_out", "load_recipe", "notes", "shipped", "to_yaml"]
