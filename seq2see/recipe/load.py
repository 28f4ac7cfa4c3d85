"""From a shipped name, a YAML file or a dict to a checked Recipe: every error at once, each with its key."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from seq2see.errors import UserError, nearest
from seq2see.recipe.check import problems
from seq2see.recipe.inert import inert
from seq2see.recipe.resolve import implied, resolved
from seq2see.recipe.schema import Recipe

SELECTORS = ("score", "cell", "kind", "optimizer", "start", "query", "tied", "stream")
"""Keys whose change makes sibling settings of the base recipe meaningless; those then fall back to their defaults."""


def shipped() -> dict[str, str]:
    """{name: description} of the recipes that come with the package."""
    folder = resources.files("seq2see") / "recipes"
    found = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".yaml"):
            found[file.name.removesuffix(".yaml")] = str(yaml.safe_load(file.read_text("utf-8")).get("description", ""))
    return found


def load_recipe(given: str | Path | Mapping[str, Any] | Recipe, *, overrides: Iterable[str] = ()) -> Recipe:
    """The recipe of that name or file, with `key.path=value` overrides, checked and resolved.

    >>> load_recipe({"inputs": {"source": {}}, "attention": "none"}).decoder.start
    ['source']
    """
    if isinstance(given, Recipe):
        raw, origin = given.to_dict(), "recipe"
    elif isinstance(given, Mapping):
        raw, origin = copy.deepcopy(dict(given)), "recipe"
    else:
        raw, origin = _read(given)
    changes = [_parse(override) for override in overrides]
    raw = _shorthand(raw)
    for path, value in changes:
        _put(raw, path, value)
    raw = _shorthand(raw)
    if changes:
        _drop_what_lost_its_meaning(raw, [path for path, _ in changes])
    recipe = implied(_validated(raw, origin))
    found = problems(recipe)
    if found:
        raise UserError(_listed(origin, found))
    return resolved(recipe)


def notes(recipe: Recipe, given: Mapping[str, Any] | None = None) -> list[str]:
    """What was decided for the user and should be said."""
    text = recipe.inputs and recipe.decoder.kind == "recurrent"
    if text and recipe.attention.score == "none" and recipe.started_by and not recipe.fed_every_step:
        return [f"attention is off: the decoder starts from the summary of {', '.join(recipe.started_by)}"]
    return []


def _read(given: str | Path) -> tuple[dict[str, Any], str]:
    path = Path(given)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        if not path.is_file():
            raise UserError(f"{path}: no such recipe file")
        text, origin = _text(path), str(path)
    else:
        known = shipped()
        if str(given) not in known:
            hint = nearest(str(given), known)
            raise UserError(f"unknown recipe '{given}'{hint}; allowed: a YAML file, or one of {', '.join(known)}")
        text = (resources.files("seq2see") / "recipes" / f"{given}.yaml").read_text("utf-8")
        origin = str(given)
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UserError(f"{origin}{where}: not YAML: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(raw, dict):
        raise UserError(f"{origin}: a recipe is a mapping of keys (inputs, output, attention, ...), got {raw!r}")
    return raw, origin


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}); a recipe is a YAML text file") from None


def _parse(override: str) -> tuple[str, Any]:
    path, equals, value = override.partition("=")
    if not equals or not path.strip():
        raise UserError(f"--set {override}: not KEY=VALUE, for example decoder.size=256")
    try:
        return path.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise UserError(f"--set {override}: '{value}' is not a YAML value") from None


def _put(raw: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    here = raw
    for key in parents:
        inner = here.get(key)
        if not isinstance(inner, dict):
            inner = here[key] = {}
        here = inner
    here[last] = value


def _shorthand(raw: dict[str, Any]) -> dict[str, Any]:
    """`attention: none` for `attention: {score: none}`; a bare score name likewise; an output is text by default."""
    if isinstance(raw.get("attention"), str):
        raw["attention"] = {"score": raw["attention"]}
    if isinstance(raw.get("output"), dict):
        raw["output"] = {"kind": "text", **raw["output"]}
    return raw


def _drop_what_lost_its_meaning(raw: dict[str, Any], changed: list[str]) -> None:
    """Settings of the base recipe that an override made meaningless go; those the user set stay, to be refused."""
    if not any(
        path.rsplit(".", 1)[-1] in (*SELECTORS, "attention", "decoder", "encoder", "output") for path in changed
    ):
        return
    try:
        meaningless = inert(implied(Recipe.model_validate(raw)))
    except (ValidationError, RecursionError, KeyError):
        return
    for path in meaningless:
        if not any(given == path or path.startswith(given + ".") for given in changed):
            *parents, last = path.split(".")
            here: Any = raw
            for key in parents:
                here = here.get(key, {})
            here.pop(last, None)


def _validated(raw: dict[str, Any], origin: str) -> Recipe:
    try:
        return Recipe.model_validate(raw)
    except ValidationError as error:
        raise UserError(_listed(origin, [_said(one) for one in error.errors()])) from None


def _said(error: Any) -> str:
    parts = [str(part) for part in error["loc"] if part not in ("text", "label") or error["loc"][0] != "output"]
    path = ".".join(parts)
    if error["type"] == "extra_forbidden":
        allowed = _keys(error["loc"][:-1])
        return f"{path}: unknown key{nearest(parts[-1], allowed)}; allowed: {', '.join(allowed)}"
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"{path}.kind: {error['input']!r} is not allowed; allowed: {error['ctx'].get('expected_tags', 'text, label')}"
    expected = str(error["msg"]).replace("Input should be", "should be")
    value = error["input"]
    hint = (
        nearest(value, error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", "))
        if (isinstance(value, str) and "expected" in error.get("ctx", {}))
        else ""
    )
    return f"{path}: {expected}, got {value!r}{hint}"


def _keys(location: Iterable[Any]) -> list[str]:
    """The keys allowed at a place of the schema."""
    here: Any = Recipe
    for part in location:
        if isinstance(here, type) and issubclass(here, BaseModel) and part in here.model_fields:
            here = here.model_fields[part].annotation
        models = _models(here)
        if part in ("text", "label") and len(models) > 1:
            models = [model for model in models if model.model_fields["kind"].default == part]
        here = models[0] if models else here
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _listed(origin: str, found: list[str]) -> str:
    if len(found) == 1:
        return f"{origin}: {found[0]}"
    return "\n".join([f"{origin}: {len(found)} problems", *(f"  {problem}" for problem in found)])
