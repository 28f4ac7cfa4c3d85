"""From a shipped name, a YAML file or a dict to a checked Recipe: every error at once, each with its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from seq2see import __version__
from seq2see.errors import UserError, nearest
from seq2see.files import read_text, shortened
from seq2see.recipe.messages import LISTED, RecipeError, schema_problems
from seq2see.recipe.overrides import left_out as settings_left_out
from seq2see.recipe.overrides import overridden, spelled_out
from seq2see.recipe.resolve import implied, parsed, without_foreign_keys
from seq2see.recipe.rules import problems
from seq2see.recipe.rules_attention import copying_notes
from seq2see.recipe.schema import Recipe
from seq2see.recipe.yaml import MOST_BYTES, parse

KEPT = "recipe.yaml"
"""The recipe in a model's folder."""
FORMAT_KEY, FORMAT = "format", 2
"""The format of a model's folder, which its recipe.yaml begins with. Folders of seq2see 0.1.0 do not name theirs: it is
format 1, which differs in nothing else."""


def shipped() -> dict[str, str]:
    """{name: description} of the recipes that come with the package."""
    texts = {name: file.read_text("utf-8") for name, file in _shipped_files().items()}
    return {name: str(parse(text, origin=name).get("description", "")) for name, text in texts.items()}


def _shipped_files() -> dict[str, Traversable]:
    files = sorted((resources.files("seq2see") / "recipes").iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".yaml"): file for file in files if file.name.endswith(".yaml")}


def load_recipe(
    source: str | Path | Mapping[str, Any] | Recipe,
    *,
    overrides: Iterable[str] = (),
    complete: bool = False,
    trusted: bool = False,
) -> Recipe:
    """The recipe of that name or file, with `key.path=value` overrides, checked and made complete.

    complete: it was written by a machine with nothing left out (a model's folder), so that what is missing was lost. A
    file cut short can still be YAML, and defaults in place of the lost settings would make another model.
    trusted: such a file as it was saved. It kept all rules before its model was trained, so only its types are checked;
    one of an earlier format is read as any other.

    >>> load_recipe({"inputs": {"source": {}}, "attention": "none"}).decoder.start
    ['source']
    """
    raw, origin = _read(source, complete=complete) if isinstance(source, str | Path) else (_plain(source), "recipe")
    if complete:
        _check_complete(raw, origin)
    if trusted and complete:
        with suppress(ValidationError):
            return Recipe.model_validate(raw)
    overrides = list(overrides)
    raw = overridden(raw, overrides) if overrides else spelled_out(raw)
    try:
        recipe, foreign = parsed(raw)
    except ValidationError as error:
        wrong = schema_problems(error, raw)
        wrong += without_foreign_keys(implied(raw), wrong={problem.path for problem in wrong})[1]
        more = max(error.error_count() - len(wrong), 0) if len(wrong) == LISTED else 0
        raise RecipeError(origin, wrong, more=more) from None
    if broken := [*foreign, *problems(recipe)]:
        raise RecipeError(origin, broken)
    return recipe


def left_out(source: str | Path | Mapping[str, Any] | Recipe, overrides: Iterable[str]) -> list[str]:
    """A line for each setting of a recipe that is not used because the overrides make it meaningless."""
    raw, _ = _read(source, complete=False) if isinstance(source, str | Path) else (_plain(source), "")
    return settings_left_out(raw, overrides)


def notes(recipe: Recipe) -> list[str]:
    """What was decided for the user, or does less than it seems to, and should be said."""
    text = recipe.inputs and not recipe.output.one_step
    if text and recipe.attention.score == "none" and recipe.started_by and not recipe.fed_every_step:
        return [f"attention is off: the decoder starts from the summary of {', '.join(recipe.started_by)}"]
    return copying_notes(recipe)


def _check_complete(raw: Mapping[str, Any], origin: str) -> None:
    missing = [key for key in Recipe.model_fields if key not in raw]
    if missing:
        raise UserError(
            f"{origin}: cut short: without {', '.join(missing)}; the recipe in a model's folder has every key"
        )


def _read(source: str | Path, *, complete: bool) -> tuple[dict[str, Any], str]:
    path = Path(source)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        text, origin = read_text(path, most=MOST_BYTES, what="a recipe (a YAML text file)"), str(path)
    else:
        known = _shipped_files()
        if str(source) not in known:
            hint = nearest(str(source), known)
            inside = path / KEPT
            if inside.is_file():
                raise UserError(f"{path}: a model's folder, and a recipe is expected here; {inside} is one")
            raise UserError(f"unknown recipe '{source}'{hint}; allowed: a YAML file, or one of {', '.join(known)}")
        text, origin = known[str(source)].read_text("utf-8"), str(source)
    if complete and not text.endswith("\n"):
        raise UserError(f"{origin}: cut short: its last line has no end")
    raw = parse(text, origin=origin)
    if not isinstance(raw, dict):
        got = shortened(raw) if text.strip() else "an empty file"
        raise UserError(f"{origin}: a recipe is a mapping of keys (inputs, output, attention, ...), got {got}")
    return _without_format(raw, origin), origin


def _plain(source: Mapping[str, Any] | Recipe) -> dict[str, Any]:
    return source.to_dict() if isinstance(source, Recipe) else _without_format(source, "recipe")


def _without_format(raw: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """The recipe without the format version of the folder it comes from, which is checked."""
    number = raw.get(FORMAT_KEY, 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise UserError(f"{origin}: {FORMAT_KEY}: {shortened(number)}; allowed: a whole number from 1 to {FORMAT}")
    if number > FORMAT:
        raise UserError(
            f"{origin}: {FORMAT_KEY}: {number}: it was written by a newer version of seq2see; this one "
            f"({__version__}) reads formats up to {FORMAT}: upgrade seq2see"
        )
    return {key: value for key, value in raw.items() if key != FORMAT_KEY}


def to_yaml(recipe: Recipe) -> str:
    """The text of recipe.yaml in a model's folder: the format version, then every key of the recipe."""
    record = {FORMAT_KEY: FORMAT, **recipe.to_dict()}
    return yaml.safe_dump(record, sort_keys=False, allow_unicode=True)
