"""Groups of keys in a recipe (`Settings`), the types of their values, and these types in a reader's words."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from seq2see.registry import Problem

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

# ---------------- What settings are made of

Tokens = Literal["word", "character", "symbol", "bpe"]
Activation = Literal["relu", "tanh", "logistic", "linear"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
LARGEST = 1_000_000_000
"""Of whole numbers that have no smaller limit of their own: 32 bits hold it, and sums of several too."""
Positive = Annotated[int, Field(gt=0, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Size = Annotated[int, Field(gt=0, le=1_000_000)]
"""Numbers of a vector. A product of two such sizes takes 4 TB, and still has a size that torch can name."""
MOST_LAYERS = 1_000
"""Of all networks of a recipe together: each layer is built one by one, and none learns through more."""
Layers = Annotated[int, Field(gt=0, le=MOST_LAYERS)]
MOST_SIDE = 10_000
"""Pixels of a side that pictures are brought to."""
Side = Annotated[int, Field(gt=0, le=MOST_SIDE)]
Seed = Annotated[int, Field(gt=-(2**63), lt=2**63)]
Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(gt=0)]
Amount = Annotated[float, Field(ge=0)]
Temperature = Annotated[float, Field(ge=1e-3, le=1e3)]
"""Energies divided by less would leave single precision, by more they would all be alike."""
Scalar = bool | int | float | str

BROUGHT = "or one that --plugin brings"


class Parts:
    """The further settings that the word of a key brings along: those of a kind, of a score, of a cell.

    settings: {word: class}, to which plug-ins add theirs. A class that is a subclass of the one with the key stands in
    its place; any other is combined with it. apart: the classes never shared their keys, so that one of another class
    is simply unknown.
    """

    def __init__(self, settings: Mapping[str, type[Settings]], *, apart: bool = False):
        self.settings, self.apart = settings, apart

    def chosen(self, settings: type[Settings]) -> bool:
        """Whether a class is one of these already."""
        return any(issubclass(settings, one) for one in self.settings.values())

    def of(self, value: Any) -> list[type[Settings]]:
        """Those of a word, or of several (`levels`); none for a word that is not known."""
        words = value if isinstance(value, list | tuple) and len(value) > 1 else [value]
        return [self.settings[word] for word in words if isinstance(word, str) and word in self.settings]


@dataclass(frozen=True)
class NameOf:
    """Marks a text that has to be a name in a registry, to which plug-ins add, or one of a few other words."""

    names: Collection[str]
    others: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        return [*self.names, *self.others]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, name: str) -> str:
        if name not in self.names and name not in self.others:
            raise PydanticCustomError("unknown_name", "unknown name")
        return name


class _ChosenByValue(ModelMetaclass):
    """Lets `EncoderSettings(kind="transformer", heads=2)` make settings of the class that its values choose."""

    def __call__(cls, /, **values: Any) -> Any:  # noqa: N805 - of a metaclass
        chosen, values = cls.choose(values)  # type: ignore[attr-defined]
        return super(_ChosenByValue, chosen).__call__(**values)


class Settings(BaseModel, metaclass=_ChosenByValue):
    """A group of keys in a recipe. Unknown keys are refused.

    parts: {key: the settings its words bring along}. So a group has the keys of the kind (score, scope, cell ...) it
    names and no others, and is an instance of that kind's class of settings too.
    """

    model_config = ConfigDict(extra="forbid", validate_default=True, allow_inf_nan=False)
    parts: ClassVar[Mapping[str, Parts]] = {}
    alone: ClassVar[tuple[str, ...]] = ()
    """The only keys that may be given; none: all may."""
    switched_off: ClassVar[str] = ""
    """Why no other may be."""
    plugin_keys: ClassVar[tuple[str, ...]] = ()
    """Mappings that only parts which plug-ins bring may have."""
    root: ClassVar[type[Settings] | None] = None
    """The class that a combined one was made of."""

    @classmethod
    def choose(cls, values: Mapping[str, Any]) -> tuple[type[Self], dict[str, Any]]:
        """The class of these values, and the values as it spells them."""
        root: type[Settings] = cls.root or cls
        parts: list[type[Settings]] = []
        values, waiting, seen = root.spelled(values), [root], set[str]()
        while waiting:
            here = waiting.pop(0)
            for key, brought in here.parts.items():
                if key in seen or brought.chosen(root):
                    continue
                seen.add(key)
                default = here.model_fields[key].default
                for part in brought.of(values.get(key, default)):
                    if issubclass(part, root):
                        root, values = part, part.spelled(values)
                    elif part not in parts:
                        parts.append(part)
                    waiting.append(part)
        return combined(root, tuple(parts)), dict(values)  # type: ignore[return-value]

    @classmethod
    def spelled(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values in today's keys, where older recipes had others."""
        return values

    @model_validator(mode="wrap")
    @classmethod
    def _choose(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(values, Mapping):
            return handler(values)
        chosen, values = cls.choose(values)
        if chosen is not cls:
            return chosen.model_validate(values)
        if chosen.alone:
            chosen._check_alone(values)
        return handler(values)

    @classmethod
    def _check_alone(cls, values: Mapping[str, Any]) -> None:
        errors = [
            InitErrorDetails(type="extra_forbidden", loc=(key,), input=value)
            for key, value in values.items()
            if key not in cls.alone
        ]
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """As pydantic's, with the keys of the chosen classes wherever groups are nested."""
        return super().model_dump(**{"serialize_as_any": True, **options})

    @model_serializer(mode="wrap")
    def _serialise(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = handler(self)
        return {key: values[key] for key in self.alone} if self.alone else values

    @classmethod
    def known_keys(cls) -> list[str]:
        """The keys that may be given."""
        return list(cls.alone or cls.model_fields)

    @classmethod
    def foreign(cls) -> dict[str, Foreign]:
        """The keys that other words of the keys that choose would bring along, or that are switched off."""
        found: dict[str, Foreign] = {}
        off = "" if not cls.alone else cls.switched_off
        root = cls.root or cls
        for ancestor in root.__mro__:  # what a nearer key brings is not told of one further away
            nearer = {*cls.known_keys(), *found}
            for chooser, word, key, field in _brought(ancestor):
                if key not in nearer:
                    found.setdefault(key, Foreign(off)).add(chooser, word, field)
        for key, field in cls.model_fields.items():
            if key not in cls.known_keys():
                found.setdefault(key, Foreign(off)).fields.append(field)
        for key in cls.plugin_keys:
            if key not in cls.known_keys():
                found.setdefault(key, Foreign(off or "only a part that --plugin brings has such a setting"))
                found[key].fields.append(FieldInfo(default={}))
        return found


@dataclass
class Foreign:
    """A key that belongs to other kinds: its fields there, and the words that bring it, by the key that chooses."""

    off: str = ""
    fields: list[FieldInfo] = dataclass_field(default_factory=list)
    words: dict[str, list[str]] = dataclass_field(default_factory=dict)

    def add(self, chooser: str, word: str, field: FieldInfo) -> None:
        self.fields.append(field)
        if word not in self.words.setdefault(chooser, []):
            self.words[chooser].append(word)

    def reason(self, group: str) -> str:
        """Why it has no effect in the group of keys at that path."""
        where = ", or ".join(f"{group}.{chooser} {', '.join(words)}" for chooser, words in self.words.items())
        several = sum(map(len, self.words.values())) > 1
        return self.off or f"only {where} {'have' if several else 'has'} such a setting"

    def differing(self, path: str, value: Any) -> list[str]:
        """That path where the value is not what these kinds have where nothing is said; for options those that are."""
        defaults = [field.get_default(call_default_factory=True) for field in self.fields]
        found = min((_differing(path, value, default) for default in defaults), key=len)
        return found if isinstance(defaults[0], dict) else [path] * bool(found)


def _differing(path: str, value: Any, default: Any) -> list[str]:
    """`path`, or the paths of the keys in it, where a value differs from a default."""
    if not isinstance(value, Mapping) or not isinstance(default, Settings | dict):
        return [] if value == default else [path]
    usual, others = dict(default), type(default).foreign() if isinstance(default, Settings) else {}
    found = []
    for key, inner in value.items():
        if key in usual:
            found += _differing(f"{path}.{key}", inner, usual[key])
        else:
            found += others[key].differing(f"{path}.{key}", inner) if key in others else [f"{path}.{key}"]
    return found


def _brought(kind: type) -> Iterator[tuple[str, str, str, FieldInfo]]:
    """(key that chooses, word, key, field) of all that the words of a class's own keys may bring along."""
    for chooser, brought in vars(kind).get("parts", {}).items() if issubclass(kind, Settings) else ():
        for word, part in brought.settings.items() if not brought.apart else ():
            yield from ((chooser, word, key, field) for key, field in _all_fields(part).items())


def _all_fields(part: type[Settings]) -> dict[str, FieldInfo]:
    """The fields of a class and of all that its words may bring along."""
    own = dict(part.model_fields)
    for ancestor in part.__mro__:
        for brought in vars(ancestor).get("parts", {}).values() if issubclass(ancestor, Settings) else ():
            for inner in brought.settings.values():
                if not issubclass(part, inner) and not issubclass(inner, ancestor):
                    own = _all_fields(inner) | own
    return own


def no_effect(settings: Settings, path: str, keys: Iterable[str], reason: str) -> Iterator[Problem]:
    """A problem for each of these keys that differs from its default; none without a reason."""
    fields = type(settings).model_fields
    for key in keys if reason else ():
        if key in fields and getattr(settings, key) != fields[key].get_default(call_default_factory=True):
            yield Problem(f"{path}.{key}", reason, "no-effect", no_effect=True)


class NoSettings(Settings):
    """For a part that has nothing to set."""


@cache
def combined(root: type[Settings], parts: tuple[type[Settings], ...]) -> type[Settings]:
    """A class with the keys of all of them."""
    larger = (root, *parts)
    parts = tuple(part for part in parts if not any(other is not part and issubclass(other, part) for other in larger))
    if not parts:
        return root
    body: dict[str, Any] = {"__module__": root.__module__, "__doc__": root.__doc__, "root": root}
    closed = next((part for part in parts if part.alone), root)
    body |= {"alone": closed.alone, "switched_off": closed.switched_off}
    made: type[Settings] = _ChosenByValue(root.__name__, (*parts, root), body)
    return made


# ---------------- Types of settings in a reader's words, for messages and for the documentation

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
        name = next((one for one in arguments[1:] if isinstance(one, NameOf)), None)
        if name is not None:
            return f"{', '.join(name.words)}, {BROUGHT}"
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
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def kind_in(settings: type[Settings]) -> list[str]:
    """The words its `kind` may be."""
    return [str(word) for word in get_args(settings.model_fields["kind"].annotation)]


def settings_in(annotation: Any) -> list[type[Settings]]:
    """The groups of keys that may stand there: one, several to choose from by `kind`, or none."""
    if is_settings(annotation):
        return [annotation]
    return [one for argument in get_args(annotation) for one in settings_in(argument)]
