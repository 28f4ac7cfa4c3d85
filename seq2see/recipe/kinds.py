"""Which class of settings each group of keys has, and the keys in it that belong to another kind."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args, get_origin

from seq2see.recipe.schema import Recipe
from seq2see.registry import Problem
from seq2see.settings.base import Settings, given_in, is_settings, kind_in, settings_in

Raw = dict[str, Any]
SILENT = "text"
"""The kind of an input or an output that does not say it."""


def class_of(annotation: Any, values: Mapping[str, Any]) -> type[Settings] | None:
    """The class of settings that these values choose; None where none is meant, or its kind is not known."""
    annotation = given_in(annotation)
    if is_settings(annotation):
        chosen: type[Settings] = annotation.choose(values)[0]
        return chosen
    if get_origin(annotation) in (dict, list, tuple):
        return None
    kind = values.get("kind", SILENT)
    known = [one for one in settings_in(annotation) if "kind" in one.model_fields and kind in kind_in(one)]
    return known[0].choose(values)[0] if known else None


def groups(raw: Raw, annotation: Any = Recipe, path: str = "") -> Iterator[tuple[str, type[Settings], Raw]]:
    """(path, class, values) of every group of keys in a raw recipe whose class is known; older spellings are mended."""
    if get_origin(annotation) is dict:
        for name, value in raw.items():
            if isinstance(value, dict):
                yield from groups(value, get_args(annotation)[1], f"{path}.{name}")
        return
    chosen = class_of(annotation, raw)
    if chosen is None:
        return
    spelled = chosen.choose(raw)[1]
    if spelled != raw:
        raw.clear()
        raw.update(spelled)
    yield path, chosen, raw
    for key, value in list(raw.items()):
        if isinstance(value, dict) and key in chosen.model_fields:
            inside = given_in(chosen.model_fields[key].annotation)
            yield from groups(value, inside, f"{path}.{key}" if path else str(key))


def without_foreign_keys(raw: Raw, *, wrong: Collection[str] = ()) -> tuple[Raw, list[Problem]]:
    """A copy without keys of other kinds, and a problem for each that does not have its default.

    Recipes that were saved before each kind had keys of its own have all of them, at their defaults. wrong: paths of
    keys with a problem of their own: where one of them was to name the kind, nothing is said of the keys of others.
    """
    raw, problems = copy.deepcopy(raw), []
    for path, settings, values in groups(raw):
        for key, foreign in settings.foreign().items():
            if key not in values:
                continue
            differing = foreign.differing(f"{path}.{key}", values.pop(key))
            if not any(f"{path}.{chooser}" in wrong for chooser in foreign.words):
                problems += [Problem(one, foreign.reason(path), "other-kind", no_effect=True) for one in differing]
    return raw, problems
