"""Settings of classes that plug-ins bring: made from the arguments of their constructors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NotRequired, Required, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from seq2see.registry import Registry
from seq2see.settings.base import NoSettings, Scalar, Settings, is_union, without_none

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
S = TypeVar("S", bound=Settings)


def arguments_of(kind: type) -> list[inspect.Parameter]:
    """The named arguments of a constructor, without self."""
    constructor = inspect.unwrap(kind.__init__)  # type: ignore[misc]
    parameters = inspect.signature(constructor).parameters.values()
    return [parameter for parameter in parameters if parameter.kind in NAMED][1:]


def settings_from_constructor(
    name: str,
    kind: type,
    base: type[S],
    *,
    known: Collection[str] = (),
    keys: Mapping[str, FieldInfo] | None = None,
    named: bool = True,
    direct: bool = False,
    **class_variables: Any,
) -> type[S]:
    """Settings for a class whose constructor states what can be set; TypeError for a type that no recipe can write.

    known: arguments that are not settings; keys: arguments that have a key of their own beside the options; named: the
    settings have the `kind` that is the name; direct: every argument has a key of its own, and there are no options.
    """
    keys = keys or {}
    own = [argument for argument in arguments_of(kind) if argument.name not in known]
    hints = _hints(name, kind, own)
    fields: dict[str, Any] = {"kind": (Literal[name], Field(name, description="its name"))} if named else {}
    for argument in own:
        if argument.name in keys:
            fields[argument.name] = _key(keys[argument.name], argument)
        elif direct:
            default = ... if argument.default is argument.empty else argument.default
            described = Field(default, description=f"its argument `{argument.name}`")
            fields[argument.name] = (hints[argument.name], described)
    options = {argument.name: argument for argument in own if argument.name not in fields}
    if options:
        annotation = _options(name, {key: (hints[key], argument) for key, argument in options.items()})
        fields["options"] = (annotation, Field(default_factory=dict, description="its other arguments, by name"))
    name = f"{kind.__name__}Settings"
    settings = create_model(name, __base__=base, __module__=kind.__module__, __doc__=kind.__doc__, **fields)
    class_variables |= {"own": True} if hasattr(base, "own") else {}
    for key, value in class_variables.items():
        setattr(settings, key, value)
    return settings


def construct(kind: Any, settings: Settings, **known: Any) -> Any:
    """An object of a class, with those of `known` and of the settings that its constructor has as arguments."""
    values = dict(settings) | known
    return kind(**{argument.name: values[argument.name] for argument in arguments_of(kind) if argument.name in values})


def constructor_values(settings: Settings, *, keys: Collection[str] = ()) -> dict[str, Any]:
    """What these settings say about the arguments of a constructor; what they leave open is left to its defaults."""
    values = {key: value for key, value in settings if key in keys and value is not None}
    return values | dict(getattr(settings, "options", {}))


def _key(field: FieldInfo, argument: inspect.Parameter) -> tuple[Any, Any]:
    """The type and default of an argument with a key of its own, which has to be given where nobody has a default."""
    if argument.default is argument.empty and field.default is None:
        return without_none(field.annotation), Field(description=field.description)
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
    written = {
        argument.name: argument.annotation for argument in arguments if argument.annotation is not argument.empty
    }
    hints = get_type_hints(
        SimpleNamespace(__annotations__=written),
        globalns=getattr(constructor, "__globals__", {}),
        include_extras=True,
    )
    annotations = {argument.name: _annotation(argument, hints) for argument in arguments}
    for option, annotation in annotations.items():
        if not _scalar(annotation):
            raise TypeError(
                f"'{name}': its argument {option} is of type {annotation}, which no recipe can write; "
                "allowed: bool, int, float, str, or a Literal of these"
            )
    return annotations


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
        return all(part is type(None) or _scalar(part) for part in get_args(annotation))
    return annotation in (bool, int, float, str)


def part_registry(
    what: str, base: Callable[[], type], *, methods: Collection[str] = (), known: Collection[str] = ()
) -> Registry[Any]:
    """A registry of parts whose constructor's arguments are keys of the group that names them.

    base: the class that a part is a subclass of; methods: what a part has to write itself; known: arguments that are
    not settings, as they are known when a part is built.
    """

    def check(name: str, kind: Any) -> None:
        check_subclass(f"{what} '{name}'", kind, base(), methods)

    def derive(name: str, kind: type) -> type[Settings]:
        text = f"{what} '{name}' ({kind.__name__})"
        return settings_from_constructor(
            name, kind, NoSettings, known=known, named=False, direct=True, derived_from=text
        )

    return Registry(what, check=check, derive=derive)


def check_subclass(what: str, kind: Any, base: type, methods: Collection[str] = ()) -> None:
    """Refuse a part of the wrong class, or one that lacks an abstract method or one of `methods`."""
    if not (isinstance(kind, type) and issubclass(kind, base)):
        home = ".".join(base.__module__.split(".")[:2])
        raise TypeError(f"{what}: {getattr(kind, '__name__', kind)} is no subclass of {home}.{base.__name__}")
    inherited = [name for name in methods if getattr(kind, name, None) is getattr(base, name, None)]
    if missing := sorted({*getattr(kind, "__abstractmethods__", ()), *inherited}):
        raise TypeError(f"{what}: {kind.__name__} does not write {', '.join(missing)}")
    for name in methods:
        _check_signature(what, kind, base, name)


def _check_signature(what: str, kind: type, base: type, name: str) -> None:
    """Refuse a method that does not take the arguments that the base class's is called with."""
    method, expected = getattr(kind, name), getattr(base, name, None)
    if not (callable(method) and callable(expected)):
        return
    taken, wanted = inspect.signature(method).parameters, inspect.signature(expected).parameters
    kinds = {parameter.kind for parameter in taken.values()}
    keywords = [key for key, parameter in wanted.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    positional = [key for key, parameter in wanted.items() if parameter.kind in NAMED and key not in keywords]
    lacking = [key for key in keywords if key not in taken and inspect.Parameter.VAR_KEYWORD not in kinds]
    needed = [
        key
        for key, parameter in taken.items()
        if parameter.kind in NAMED and parameter.default is parameter.empty and key not in keywords
    ]
    many = inspect.Parameter.VAR_POSITIONAL in kinds or len([key for key in taken if key not in keywords]) >= len(
        positional
    )
    if lacking or len(needed) > len(positional) or not many:
        arguments = ", ".join([*positional[1:], *(["*", *keywords] if keywords else [])])
        raise TypeError(f"{what}: {kind.__name__}.{name} takes ({arguments})")
