"""Types of settings in a reader's words, for messages and for the documentation."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from seq2see.recipe.basics import LARGEST

WORDS: dict[Any, tuple[str, str]] = {
    str: ("text", "texts"),
    int: ("whole number", "whole numbers"),
    float: ("number", "numbers"),
    bool: ("true or false", "true or false"),
}


def kind_of(annotation: Any, *, several: bool = False) -> str:
    """What may stand there.

    >>> kind_of(str | list[str]), kind_of(Literal["keep", "lower"]), kind_of(dict[str, float])
    ('text or list of texts', 'keep or lower', 'mapping of texts to numbers')
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        limits = (limit for field in arguments[1:] for limit in getattr(field, "metadata", ()))
        return kind_of(arguments[0], several=several) + bounds(limits)
    if origin is Literal or is_union(annotation):
        return any_of(_choices(annotation, several=several))
    if origin is list:
        return f"list of {kind_of(arguments[0], several=True)}"
    if origin is tuple:
        return f"list of {len(arguments)} {kind_of(arguments[0], several=True)}"
    if origin is dict:
        return f"mapping of {kind_of(arguments[0], several=True)} to {kind_of(arguments[1], several=True)}"
    if is_settings(annotation):
        return "mappings of keys" if several else "mapping of keys"
    return WORDS[annotation][several]


def bounds(limits: Iterable[Any]) -> str:
    """' from 0, below 1', or nothing where a number may be any."""
    words = {"gt": "above", "ge": "from", "lt": "below", "le": "to"}
    given = [(word, getattr(limit, name)) for limit in limits for name, word in words.items() if hasattr(limit, name)]
    found = [f"{word} {value:{',' if isinstance(value, int) else 'g'}}" for word, value in given if value != LARGEST]
    return f" {', '.join(found)}" if found else ""


def _choices(annotation: Any, *, several: bool = False) -> list[str]:
    """The words of a literal, the types of a union (without the None that stands for not given), each once."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    if is_union(annotation):
        given = [one for one in get_args(annotation) if one is not type(None)]
        return list(dict.fromkeys(word for one in given for word in _choices(one, several=several)))
    return [kind_of(annotation, several=several)]


def any_of(words: list[str]) -> str:
    """'a, b or c'"""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def first_line(kind: type) -> str:
    """What a class says of itself in the first line of its docstring; nothing where it has none."""
    return next(iter((kind.__doc__ or "").strip().splitlines()), "")


def is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def given_in(annotation: Any) -> Any:
    """The type of a setting where it is given: without the None that stands for not given."""
    given = [one for one in get_args(annotation) if one is not type(None)]
    return given[0] if is_union(annotation) and len(given) == 1 else annotation


def is_settings(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def kind_in(settings: type[BaseModel]) -> list[str]:
    """The words its `kind` may be; none of its own where it stands for the names that plug-ins bring."""
    return [str(word) for word in get_args(settings.model_fields["kind"].annotation)]


def is_open(settings: type[BaseModel]) -> bool:
    """Whether its `kind` may be any name that a plug-in brings."""
    return settings.model_fields["kind"].annotation is str


def settings_in(annotation: Any) -> list[type[BaseModel]]:
    """The groups of keys that may stand there: one, several to choose from by `kind`, or none."""
    if is_settings(annotation):
        return [annotation]
    return [one for argument in get_args(annotation) for one in settings_in(argument)]
