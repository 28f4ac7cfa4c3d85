"""Encoders and decoders of the user's own: what a recipe has to know of a class that a plug-in brought.

The arguments of its constructor are its settings. No class is looked at here but by its signature: torch is not needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from seq2see.errors import nearest
from seq2see.settings.base import Scalar, is_open, is_union, kind_in, kind_of

PLUGIN = "--plugin"
BROUGHT = "or one that --plugin brings"
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Argument:
    """One argument of a constructor: the type its value has to be of, and whether it can be left out."""

    annotation: Any
    required: bool

    def value(self, given: Any) -> Any:
        """The value as the constructor wants it; ValidationError where it is of another type."""
        return TypeAdapter(self.annotation, config=ConfigDict(allow_inf_nan=False)).validate_python(given)


@dataclass(frozen=True)
class Own:
    """A class by the name recipes call it.

    given: those of its arguments that whoever builds it knows; keys: settings of a recipe whose value it takes where it
    has an argument of that name; arguments: all but the given ones. reads: kinds of input an encoder can read;
    one_step: a decoder gives labels.
    """

    name: str
    given: frozenset[str]
    arguments: Mapping[str, Argument]
    keys: frozenset[str] = frozenset()
    reads: tuple[str, ...] = ("text",)
    one_step: bool = False

    @property
    def options(self) -> list[str]:
        """Settings that are its alone, as no key of a recipe stands for them."""
        return sorted(self.arguments.keys() - self.keys)

    def path(self, name: str) -> str:
        """Where the value of an argument stands, inside the group of keys that names the class."""
        return name if name in self.keys else f"options.{name}"

    def values(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings as the constructor takes them."""
        return {name: self.arguments[name].value(value) for name, value in settings.items() if name in self.arguments}

    def wrong(self, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """(path, what is wrong) of each setting that is missing, or of another type than the constructor's hint."""
        for name, argument in self.arguments.items():
            if name not in settings:
                if argument.required:
                    yield self.path(name), f"has to be given: {self.name} has no default for it"
                continue
            try:
                argument.value(settings[name])
            except ValidationError:
                yield self.path(name), f"should be {kind_of(argument.annotation)}, got {settings[name]!r}"


ENCODERS: dict[str, Own] = {}
DECODERS: dict[str, Own] = {}


def read_class(name: str, kind: type, *, given: Collection[str], keys: Collection[str] = (), **more: Any) -> Own:
    """What recipes have to know of a class; TypeError where a hint is of no type that a recipe could write."""
    constructor = inspect.unwrap(kind.__init__)  # type: ignore[misc]
    named = [one for one in inspect.signature(constructor).parameters.values() if one.kind in NAMED][1:]
    own = [one for one in named if one.name not in given]
    written = {one.name: one.annotation for one in own if one.annotation is not one.empty}
    hints = get_type_hints(
        SimpleNamespace(__annotations__=written),
        globalns=getattr(constructor, "__globals__", {}),
        include_extras=True,
    )
    arguments = {one.name: Argument(_annotation(one, hints), one.default is one.empty) for one in own}
    for option, argument in arguments.items():
        if not _scalar(argument.annotation):
            raise TypeError(
                f"'{name}': its argument {option} is of type {argument.annotation}, which no recipe can write; "
                "allowed: bool, int, float, str, or a Literal of these"
            )
    taken = frozenset(one.name for one in named if one.name in given)
    return Own(name, taken, arguments, frozenset(keys), **more)


def words_in(settings: type[BaseModel]) -> list[str]:
    """The words the `kind` of an encoder's settings may be, those of plug-ins among them."""
    return list(ENCODERS) if is_open(settings) else kind_in(settings)


def unknown_options(own: Own | None, options: Collection[str], what: str) -> dict[str, str]:
    """{option: reason} of each option that a class (None: one of the house) does not have."""
    known = own.options if own is not None else []
    allowed = f"; allowed: {', '.join(known)}" if known else ""
    return {
        f"options.{name}": f"{what} has no such option of its own{nearest(name, known)}{allowed}"
        for name in options
        if name not in known
    }


def _annotation(one: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    """Its hint; without one the type of its default, as far as that tells."""
    if one.name in hints:
        return hints[one.name]
    kind = type(one.default)
    return kind if kind in (bool, int, float, str) else Scalar


def _scalar(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _scalar(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return True
    if is_union(annotation):
        return all(one is type(None) or _scalar(one) for one in get_args(annotation))
    return annotation in (bool, int, float, str)
