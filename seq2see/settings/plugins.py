"""Settings of classes that plug-ins bring: made from the arguments of their constructors."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NotRequired, Required, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from seq2see.settings.base import Scalar, Settings, given_in, is_union

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
S = TypeVar("S", bound=Settings)


def arguments_of(kind: type) -> list[inspect.Parameter]:
    """The named arguments of a constructor, without self."""
    constructor = inspect.unwrap(kind.__init__)  # type: ignore[misc]
    return [one for one in inspect.signature(constructor).parameters.values() if one.kind in NAMED][1:]


def settings_from_constructor(
    name: str,
    kind: type,
    base: type[S],
    *,
    given: Collection[str] = (),
    keys: Mapping[str, FieldInfo] | None = None,
    named: bool = True,
    **class_variables: Any,
) -> type[S]:
    """Settings for a class whose constructor says what can be set; TypeError for a type that no recipe can write.

    given: arguments that are not settings; keys: arguments that have a key of their own beside the options; named: the
    settings have the `kind` that is the name.
    """
    keys = keys or {}
    own = [one for one in arguments_of(kind) if one.name not in given]
    hints = _hints(name, kind, own)
    fields: dict[str, Any] = {"kind": (Literal[name], Field(name, description="its name"))} if named else {}
    for one in own:
        if one.name in keys:
            fields[one.name] = _key(keys[one.name], one)
    options = {one.name: one for one in own if one.name not in keys}
    if options:
        annotation = _options(name, {key: (hints[key], one) for key, one in options.items()})
        fields["options"] = (annotation, Field(default_factory=dict, description="its other arguments, by name"))
    made = create_model(f"{kind.__name__}Settings", __base__=base, __doc__=kind.__doc__, **fields)
    for key, value in {"own": True, **class_variables}.items():
        setattr(made, key, value)
    return made


def constructor_values(settings: Settings, *, keys: Collection[str] = ()) -> dict[str, Any]:
    """What these settings say about the arguments of a constructor; what they leave open is left to its defaults."""
    values = {key: value for key, value in settings if key in keys and value is not None}
    return values | dict(getattr(settings, "options", {}))


def _key(field: FieldInfo, argument: inspect.Parameter) -> tuple[Any, Any]:
    """The type and default of an argument with a key of its own, which has to be given where nobody has a default."""
    if argument.default is argument.empty and field.default is None:
        return given_in(field.annotation), Field(description=field.description)
    return field.annotation, Field(field.default, description=field.description)


def _options(name: str, hints: Mapping[str, tuple[Any, inspect.Parameter]]) -> Any:
    """A mapping with these keys, of which those without a default are required."""
    items = {
        key: Required[hint] if argument.default is argument.empty else NotRequired[hint]
        for key, (hint, argument) in hints.items()
    }
    made = TypedDict(f"{name} options", items)  # type: ignore[misc]
    made.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)  # type: ignore[attr-defined]
    return made


def _hints(name: str, kind: type, arguments: Collection[inspect.Parameter]) -> dict[str, Any]:
    constructor = inspect.unwrap(kind.__init__)  # type: ignore[misc]
    written = {one.name: one.annotation for one in arguments if one.annotation is not one.empty}
    hints = get_type_hints(
        SimpleNamespace(__annotations__=written),
        globalns=getattr(constructor, "__globals__", {}),
        include_extras=True,
    )
    found = {one.name: _annotation(one, hints) for one in arguments}
    for option, annotation in found.items():
        if not _scalar(annotation):
            raise TypeError(
                f"'{name}': its argument {option} is of type {annotation}, which no recipe can write; "
                "allowed: bool, int, float, str, or a Literal of these"
            )
    return found


def _annotation(argument: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    """Its hint; without one the type of its default, as far as that tells."""
    if argument.name in hints:
        return hints[argument.name]
    kind = type(argument.default)
    return kind if kind in (bool, int, float, str) else Scalar


def _scalar(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _scalar(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return True
    if is_union(annotation):
        return all(one is type(None) or _scalar(one) for one in get_args(annotation))
    return annotation in (bool, int, float, str)
