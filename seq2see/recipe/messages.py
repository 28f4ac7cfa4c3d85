"""Messages about a recipe's keys and values: the path of the key, the value, and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import ValidationError
from typing_extensions import is_typeddict

from seq2see.errors import UserError, nearest
from seq2see.files import shortened
from seq2see.recipe.resolve import class_of, fill_implied, usual_encoder
from seq2see.recipe.schema import Recipe
from seq2see.registry import Problem
from seq2see.settings.base import (
    AUTO,
    Fitted,
    NameOf,
    is_settings,
    is_union,
    or_plugin,
    settings_in,
    type_text,
    without_none,
)
from seq2see.settings.columns import ENCODERS, EncoderSettings

LISTED = 20
"""Problems that are listed; the others are counted."""


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
    """A problem for each wrong key, at most `LISTED`.

    Where a value may be of several types, their failures are one problem. The other keys of an unknown kind are not
    reported, as that kind might have them.
    """
    problems: dict[Problem, None] = {}
    complete, details = fill_implied(dict(raw)), error.errors(include_url=False)
    unknown = {detail["loc"][:-1] for detail in details if detail["type"] in UNKNOWN}
    for detail in details:
        guessed = detail["type"] == "extra_forbidden" and detail["loc"][:-1] in unknown
        if not guessed and not _inherited(detail["loc"], raw):
            problems[_problem(detail, raw, complete)] = None
        if len(problems) == LISTED:
            break
    return list(problems)


UNKNOWN = ("unknown_name", "string_type")
"""Errors of keys that choose which others there are."""


def _inherited(location: Sequence[str | int], raw: Mapping[str, Any]) -> bool:
    """Whether an input's encoder has that key from the recipe's, where it is reported already."""
    if location[:1] != ("inputs",) or "encoder" not in location or not isinstance(raw.get("encoder"), Mapping):
        return False
    own = _found(raw, [*location[:2], "encoder"], None)
    own = own if isinstance(own, Mapping) else {}
    return location[-1] in raw["encoder"] and location[-1] not in own


@dataclass
class Spot:
    """The place of an error in a recipe: its value, its path as a user writes it, and the type it should have; fitted:
    it may be `auto`."""

    value: Any
    path: list[str | int] = field(default_factory=list)
    annotation: Any = Recipe
    fitted: bool = False

    def __str__(self) -> str:
        return ".".join(map(str, self.path))

    @property
    def settings(self) -> Any:
        """The class of settings at this place; None where there is none."""
        values = self.value if isinstance(self.value, Mapping) else {}
        return class_of(self.annotation, values) if settings_in(self.annotation) else None

    @property
    def keys(self) -> list[str]:
        """The keys that are allowed here."""
        if is_typeddict(self.annotation):
            return sorted(self.annotation.__annotations__)
        return list(self.settings.known_keys()) if self.settings is not None else []

    def inside(self, part: str | int) -> Spot:
        """The place one part of pydantic's location further: a key, an index, or a branch of a union."""
        kind, path = get_origin(self.annotation), [*self.path, part]
        value = self.value.get(part) if isinstance(self.value, Mapping) else None
        if kind is dict:
            return Spot(value, path, get_args(self.annotation)[1])
        if is_typeddict(self.annotation):
            hint = get_type_hints(self.annotation, include_extras=True)[str(part)]
            return Spot(value, path, without_none(get_args(hint)[0]))  # Required[..] or NotRequired[..]
        if kind in (list, tuple):
            return Spot(value, path, get_args(self.annotation)[0])
        settings = self.settings
        if settings is None:
            return self
        if not is_settings(self.annotation) and part not in settings.model_fields:
            return Spot(self.value, self.path, settings)  # a branch
        info = settings.model_fields[str(part)]
        annotation = without_none(info.annotation)
        marked = [mark for mark in info.metadata if isinstance(mark, NameOf)]
        fitted = any(isinstance(mark, Fitted) for mark in info.metadata)
        return Spot(value, path, Annotated[annotation, marked[0]] if marked else annotation, fitted)


def _problem(error: Any, raw: Mapping[str, Any], complete: Mapping[str, Any]) -> Problem:
    kind, value, location = error["type"], error["input"], error["loc"]
    if not location:
        return Problem("", f"a key should be a text, got {shortened(value)}", "type")
    if location[-1] == "[key]":
        return Problem(".".join(map(str, location[:-1])), f"a key should be a text, got {shortened(value)}", "type")
    if kind in ("extra_forbidden", "invalid_key"):
        parent, key = reduce(Spot.inside, location[:-1], Spot(complete)), str(location[-1])
        path = ".".join([*map(str, parent.path), key])
        allowed = f"allowed: {', '.join(parent.keys)}{_own_encoders(parent, key, raw)}"
        return Problem(path, f"unknown key{nearest(key, parent.keys)}; {allowed}", "unknown-key")
    parent = reduce(Spot.inside, location[:-1], Spot(complete))
    if kind == "missing" and isinstance(location[-1], str):  # otherwise the end of a list, which is too short
        spot = parent.inside(location[-1])
        return Problem(str(spot), f"required: {type_text(spot.annotation, article=True)}", "missing")
    spot = parent if kind == "missing" else parent.inside(location[-1])
    return _wrong_value(error, spot, raw)


def _wrong_value(error: Any, spot: Spot, raw: Mapping[str, Any]) -> Problem:
    kind, value, annotation, path = error["type"], error["input"], spot.annotation, str(spot)
    auto = f" or {AUTO}" if spot.fitted else ""
    names = next((mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, NameOf)), None)
    if names is not None:
        return Problem(path, _not_allowed(_found(raw, spot.path, value), names.words, plugins=True), "kind")
    if kind == "literal_error" and not is_union(annotation):
        return Problem(path, _not_allowed(value, [str(word) for word in get_args(annotation)]), "value")
    if is_union(annotation) or kind.endswith("_type") or kind in ("missing", "too_long"):
        got = shortened(_found(raw, spot.path, value))
        return Problem(path, f"should be {type_text(annotation, article=True)}{auto}, got {got}", "type")
    if kind.endswith("_parsing") or kind == "int_from_float":
        return Problem(path, f"should be {type_text(annotation, article=True)}{auto}, got {shortened(value)}", "type")
    message = str(error["msg"]).replace("Input should be", "should be")
    return Problem(path, f"{message}, got {shortened(value)}", "value")


def _found(raw: Mapping[str, Any], path: Sequence[str | int], otherwise: Any) -> Any:
    """The recipe's value at a path; `otherwise` where it has none."""
    here: Any = raw
    for part in path:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            return otherwise
    return here


def _own_encoders(parent: Spot, key: str, raw: Mapping[str, Any]) -> str:
    """A hint where a key of `encoder` belongs to the encoder of an input."""
    inputs = raw.get("inputs")
    if parent.path != ["encoder"] or not isinstance(inputs, Mapping):
        return ""
    own = [name for name, settings in inputs.items() if isinstance(settings, Mapping) and key in _keys_of(settings)]
    return "".join(f"; '{name}' has an encoder of its own: inputs.{name}.encoder.{key}" for name in own)


def _keys_of(settings: Mapping[str, Any]) -> list[str]:
    """The keys that an input's own encoder may have; none where it has no encoder of its own."""
    own = settings.get("encoder")
    if not isinstance(own, Mapping):
        return []
    kind = own.get("kind", usual_encoder(dict(settings)))
    if not isinstance(kind, str) or kind not in ENCODERS:
        return []
    return EncoderSettings.choose({**own, "kind": kind})[0].known_keys()


def _not_allowed(value: Any, allowed: list[str], *, plugins: bool = False) -> str:
    hint = nearest(value, allowed) if isinstance(value, str) else ""
    names = or_plugin(allowed) if plugins else ", ".join(allowed)
    return f"{shortened(value)} is not allowed{hint}; allowed: {names}"
