"""The recipe: a task in five answers (data, encoder, attention and decoder, loss, training).

From a file and `--set` to a checked `Recipe`, in this order:

1. `load.py` reads YAML (`parse_yaml`) or a dict, and the text of overrides;
2. `overrides.py` applies overrides, and drops what they make meaningless (`apply_overrides`);
3. `resolve.py` fills in kinds that follow from others (`fill_implied`), leaves out keys of other kinds
   (`without_foreign_keys`), lets pydantic check types (`schema.py`), and fills in defaults (`fill_defaults`);
4. `rules.py` checks the rules: those of whole recipes, and the `check` of each part's settings;
5. `messages.py` turns what pydantic found into messages.

Settings that are `auto` get their values once a table is read, by the rules of `fitting.py` (`fit_recipe`).
"""

from __future__ import annotations

from seq2see.recipe.load import FORMAT, fit_recipe, left_out, load_recipe, notes, shipped, to_yaml
from seq2see.recipe.schema import Recipe

__all__ = ["FORMAT", "Recipe", "fit_recipe", "left_out", "load_recipe", "notes", "shipped", "to_yaml"]
