"""What is wrong with a recipe's keys and values, said with the path of the key, the value given and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, get_args, get_origin

from pydantic import ValidationError

from seq2see.errors import UserError, nearest
from seq2see.files import shortened
from seq2see.recipe.schema import Recipe
from seq2see.registry import Problem
from seq2see.settings.base import given_in, is_open, is_settings, is_union, kind_of, settings_in
from seq2see.settings.encoders import USUAL, EncoderSettings
from seq2see.settings.plugins import BROUGHT, PLUGIN, words_in

LISTED = 20
"""Problems told one by one; the others are counted."""


class RecipeError(UserError):
    """A recipe that cannot be used, with all its problems; more: how many there are beside those listed."""

    def __init__(self, origin: str, problems: Sequence[Problem], *, more: int = 0):
        self.problems = list(problems)
        more += max(len(problems) - LISTED, 0)
        lines = [f"  {problem}" for problem in problems[:LISTED]] + [f"  and {more:,} more"] * bool(more)
        if len(problems) == 1 and not more:
            super().__init__(f"{origin}: {problems[0]}")
        else:
            super().__init__("\n".join([f"{origin}: {len(problems[:LISTED]) + more:,} problems", *lines]))


def schema_problems(error: ValidationError, raw: Mapping[str, Any]) -> list[Problem]:
    """A problem for each key at fault, for the first ones; where a value may be of several types, the failures of all
    of them are one."""
    found: dict[Problem, None] = {}
    for one in error.errors(include_url=False):
        if not _taken_over(one["loc"], raw):
            found[_problem(one, raw)] = None
        if len(found) == LISTED:
            break
    return list(found)


def _taken_over(location: Sequence[str | int], raw: Mapping[str, Any]) -> bool:
    """Whether an input's encoder has that key from the recipe's, of which it is said already."""
    if location[:1] != ("inputs",) or "encoder" not in location or not isinstance(raw.get("encoder"), Mapping):
        return False
    own = _found(raw, [*location[:2], "encoder"], None)
    own = own if isinstance(own, Mapping) else {}
    return location[-1] in raw["encoder"] and location[-1] not in own


@dataclass
class Spot:
    """Where in a recipe an error lies: its path as a user writes it, and the type of what may stand there."""

    path: list[str | int] = field(default_factory=list)
    annotation: Any = Recipe

    def __str__(self) -> str:
        return ".".join(map(str, self.path))

    @property
    def keys(self) -> list[str]:
        return list(self.annotation.model_fields) if is_settings(self.annotation) else []

    def inside(self, part: str | int) -> Spot:
        """One part of pydantic's location further, which names keys, but also the branches of a union."""
        kind, path = get_origin(self.annotation), [*self.path, part]
        if is_settings(self.annotation):
            return Spot(path, given_in(self.annotation.model_fields[str(part)].annotation))
        if kind is dict:
            return Spot(path, get_args(self.annotation)[1])
        if settings_in(self.annotation) and kind is not list:
            groups = settings_in(self.annotation)
            chosen = [one for one in groups if part in words_in(one) or (part == PLUGIN and is_open(one))]
            return Spot(self.path, chosen[0]) if chosen else self
        return Spot(path, get_args(self.annotation)[0]) if kind in (list, tuple) else self


def _problem(error: Any, raw: Mapping[str, Any]) -> Problem:
    kind, value, location = error["type"], error["input"], error["loc"]
    if not location:
        return Problem("", f"a key should be a text, got {shortened(value)}", "type")
    if kind in ("extra_forbidden", "invalid_key"):
        parent, key = reduce(Spot.inside, location[:-1], Spot()), str(location[-1])
        path = ".".join([*map(str, parent.path), key])
        allowed = f"allowed: {', '.join(parent.keys)}{_own_encoders(parent, key, raw)}"
        return Problem(path, f"unknown key{nearest(key, parent.keys)}; {allowed}", "unknown-key")
    if location[-1] == "[key]":
        return Problem(".".join(map(str, location[:-1])), f"a key should be a text, got {shortened(value)}", "type")
    spot = reduce(Spot.inside, location[:-1] if kind == "missing" else location, Spot())
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        kind = value.get("kind") if isinstance(value, Mapping) else error["ctx"].get("tag")
        return Problem(f"{spot}.kind", _not_allowed(kind, _kinds(spot.annotation)), "kind")
    if kind == "literal_error" and not is_union(spot.annotation):
        return Problem(str(spot), _not_allowed(value, [str(word) for word in get_args(spot.annotation)]), "value")
    if is_union(spot.annotation) or kind.endswith("_type") or kind in ("missing", "too_long"):
        got = shortened(_found(raw, spot.path, value))
        return Problem(str(spot), f"should be {kind_of(spot.annotation)}, got {got}", "type")
    if kind.endswith("_parsing") or kind == "int_from_float":
        words = kind_of(spot.annotation)
        article = "" if words == kind_of(bool) else "a "
        return Problem(str(spot), f"should be {article}{words}, got {shortened(value)}", "type")
    message = str(error["msg"]).replace("Input should be", "should be")
    return Problem(str(spot), f"{message}, got {shortened(value)}", "value")


def _found(raw: Mapping[str, Any], path: Sequence[str | int], otherwise: Any) -> Any:
    """What the recipe has there; what pydantic has found where the recipe itself does not say it."""
    here: Any = raw
    for part in path:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            return otherwise
    return here


def _own_encoders(parent: Spot, key: str, raw: Mapping[str, Any]) -> str:
    """Where a key of `encoder` may have been meant for that of an input, which is not the recipe's."""
    inputs = raw.get("inputs")
    if parent.path != ["encoder"] or not isinstance(inputs, Mapping):
        return ""
    own = [name for name, given in inputs.items() if isinstance(given, Mapping) and key in _keys_of(given)]
    return "".join(f"; '{name}' has an encoder of its own: inputs.{name}.encoder.{key}" for name in own)


def _keys_of(given: Mapping[str, Any]) -> list[str]:
    """The keys of the encoder that an input has of its own, as its kind has them; none where it has no such encoder."""
    own = given.get("encoder")
    if not isinstance(own, Mapping):
        return []
    kind = own.get("kind", USUAL.get(str(given.get("kind"))))
    return [key for one in settings_in(EncoderSettings) if kind in words_in(one) for key in one.model_fields]


def _not_allowed(value: Any, allowed: list[str]) -> str:
    hint = nearest(value, allowed) if isinstance(value, str) else ""
    return f"{shortened(value)} is not allowed{hint}; allowed: {', '.join(allowed)}"


def _kinds(annotation: Any) -> list[str]:
    groups = settings_in(annotation)
    return [word for one in groups for word in words_in(one)] + [BROUGHT] * any(map(is_open, groups))
