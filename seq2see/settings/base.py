"""Groups of keys in a recipe (`Settings`), the types of their values, and these types in a reader's words."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from threading import Lock
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

from seq2see.errors import UserError
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

PLUGIN_NAME = "one that --plugin brings"


class Parts:
    """The settings that the value of a key adds to its group: `score: deep` adds `attention.layers`.

    settings: {value: class of settings}, to which plug-ins add theirs. A subclass of the class with the key replaces
    that class (kinds of encoders); any other is combined with it (scores, cells). apart: these classes never shared
    their keys in older recipes, so a key of another class is unknown rather than without effect.
    """

    def __init__(self, settings: Mapping[str, type[Settings]], *, apart: bool = False):
        self.settings, self.apart = settings, apart

    def chosen(self, settings: type[Settings]) -> bool:
        """Whether a class is one of these, or a subclass, so that there is nothing left to choose."""
        return any(issubclass(settings, part) for part in self.settings.values())

    def of(self, value: Any) -> list[type[Settings]]:
        """The classes of a value, which may be a list of words (`levels`); none for an unknown word."""
        words = value if isinstance(value, list | tuple) and len(value) > 1 else [value]
        return [self.settings[word] for word in words if isinstance(word, str) and word in self.settings]


AUTO = "auto"
"""The value of a setting that is to be fitted to the table."""


@dataclass(frozen=True)
class Fitted:
    """Marks a number that may be `auto`, which a rule of that name fits to the table (recipe/fitting.py)."""

    rule: str


FittedSize = Annotated[Size, Fitted("size")]
FittedDropout = Annotated[Share, Fitted("dropout")]


@dataclass(frozen=True)
class NameOf:
    """Marks a text that has to be a name in a registry, which plug-ins may extend, or one of a few other words."""

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
    """Lets `EncoderSettings(kind="transformer", heads=2)` create settings of the class that its values choose."""

    def __call__(cls, /, **values: Any) -> Any:  # noqa: N805 - of a metaclass
        chosen, values = cls.choose(values)  # type: ignore[attr-defined]
        return super(_ChosenByValue, chosen).__call__(**values)


class Settings(BaseModel, metaclass=_ChosenByValue):
    """A group of keys in a recipe. Unknown keys are refused.

    parts: {key: what its values add}. A group has the keys of the kind (score, scope, cell ...) that it names and no
    others, and is an instance of that kind's settings too.
    """

    model_config = ConfigDict(extra="forbid", validate_default=True, allow_inf_nan=False)
    parts: ClassVar[Mapping[str, Parts]] = {}
    alone: ClassVar[tuple[str, ...]] = ()
    """The only keys that are allowed; empty: all are."""
    switched_off: ClassVar[str] = ""
    """Why no others are allowed."""
    plugin_keys: ClassVar[tuple[str, ...]] = ()
    """Mappings that only parts of plug-ins have."""
    derived_from: ClassVar[str] = ""
    """The part of a plug-in whose constructor states these keys, for messages."""
    root: ClassVar[type[Settings] | None] = None
    """Of a combined class: the class with the keys that choose."""

    @classmethod
    def choose(cls, values: Mapping[str, Any]) -> tuple[type[Self], dict[str, Any]]:
        """The class that these values choose, and the values with older spellings replaced."""
        root: type[Settings] = cls.root or cls
        parts: list[type[Settings]] = []
        values, waiting, seen = root.spelled(values), [root], set[str]()
        while waiting:
            settings = waiting.pop(0)
            for key, choices in settings.parts.items():
                if key in seen or choices.chosen(root):
                    continue
                seen.add(key)
                default = settings.model_fields[key].default
                for part in choices.of(values.get(key, default)):
                    if issubclass(part, root):
                        root, values = part, part.spelled(values)
                    elif part not in parts:
                        parts.append(part)
                    waiting.append(part)
        return combined(root, tuple(parts)), dict(values)  # type: ignore[return-value]

    @classmethod
    def spelled(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values with older spellings replaced by today's."""
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

    def model_dump_json(self, **options: Any) -> str:
        return super().model_dump_json(**{"serialize_as_any": True, **options})

    @model_serializer(mode="wrap")
    def _serialise(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = handler(self)
        return {key: values[key] for key in self.alone} if self.alone else values

    @classmethod
    def known_keys(cls) -> list[str]:
        """The keys that are allowed."""
        return list(cls.alone or cls.model_fields)

    @classmethod
    def foreign(cls) -> dict[str, Foreign]:
        """Keys of other kinds, which other values of the choosing keys would add, and keys that are switched off."""
        foreign: dict[str, Foreign] = {}
        off = "" if not cls.alone else cls.switched_off
        for ancestor in cls.__mro__:  # the nearest class that could have a key explains it
            nearer = {*cls.known_keys(), *foreign}
            for chooser, word, key, field in _added_keys(ancestor):
                if key not in nearer:
                    foreign.setdefault(key, Foreign(off)).add(chooser, word, field)
        for key, field in cls.model_fields.items():
            if key not in cls.known_keys():
                foreign.setdefault(key, Foreign(off)).fields.append(field)
        for key in cls.plugin_keys:
            if key not in cls.known_keys():
                foreign.setdefault(key, Foreign(off or "only a part that --plugin brings has such a setting"))
                foreign[key].fields.append(FieldInfo(default={}))
        return foreign


@dataclass
class Foreign:
    """A key of other kinds: its fields there, and the values that add it, by the key that chooses."""

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
        """The path where the value is none of the defaults; the paths inside it where it is a mapping of options."""
        defaults = [field.get_default(call_default_factory=True) for field in self.fields]
        fewest = min((_differing(path, value, default) for default in defaults), key=len)
        return fewest if isinstance(defaults[0], dict) else [path] * bool(fewest)


def _differing(path: str, value: Any, default: Any) -> list[str]:
    """`path`, or the paths of the keys in it, where a value differs from a default."""
    if not isinstance(value, Mapping) or not isinstance(default, Settings | dict):
        return [] if value == default else [path]
    defaults, others = dict(default), type(default).foreign() if isinstance(default, Settings) else {}
    paths = []
    for key, inner in value.items():
        if key in defaults:
            paths += _differing(f"{path}.{key}", inner, defaults[key])
        else:
            paths += others[key].differing(f"{path}.{key}", inner) if key in others else [f"{path}.{key}"]
    return paths


def _added_keys(kind: type) -> Iterator[tuple[str, str, str, FieldInfo]]:
    """(choosing key, its value, key, field) of all keys that values of a class's own choosing keys may add."""
    for chooser, choices in vars(kind).get("parts", {}).items() if issubclass(kind, Settings) else ():
        for word, part in choices.settings.items() if not choices.apart else ():
            yield from ((chooser, word, key, field) for key, field in _all_fields(part).items())


def _all_fields(part: type[Settings]) -> dict[str, FieldInfo]:
    """The fields of a class and of all that values of its choosing keys may add."""
    own = dict(part.model_fields)
    for ancestor in part.__mro__:
        for choices in vars(ancestor).get("parts", {}).values() if issubclass(ancestor, Settings) else ():
            for inner in choices.settings.values():
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


_COMBINED: dict[tuple[type[Settings], tuple[type[Settings], ...]], type[Settings]] = {}
_LOCK = Lock()
"""Two threads that choose the same settings get the same class, so that equal settings are equal."""


def combined(root: type[Settings], parts: tuple[type[Settings], ...]) -> type[Settings]:
    """A class with the keys of all of them, and their rules."""
    with _LOCK:
        if (root, parts) not in _COMBINED:
            _COMBINED[root, parts] = _combine(root, parts)
        return _COMBINED[root, parts]


def _combine(root: type[Settings], parts: tuple[type[Settings], ...]) -> type[Settings]:
    larger = (root, *parts)
    parts = tuple(part for part in parts if not any(other is not part and issubclass(other, part) for other in larger))
    if not parts:
        return root
    for part in parts:
        others = {key for other in larger if other is not part for key in other.model_fields}
        if part.derived_from and (taken := sorted(others.intersection(part.model_fields))):
            raise UserError(
                f"{part.derived_from}: its argument {', '.join(taken)} is a key of {root.__name__} already; rename it"
            )
    body: dict[str, Any] = {"__module__": root.__module__, "__doc__": root.__doc__, "root": root}
    closed = next((part for part in parts if part.alone), root)
    body |= {"alone": closed.alone, "switched_off": closed.switched_off}
    settings: type[Settings] = _ChosenByValue(root.__name__, (*parts, root), body)
    return settings


# ---------------- Types of settings in a reader's words, for messages and for the documentation

WORDS: dict[Any, tuple[str, str]] = {
    str: ("text", "texts"),
    int: ("whole number", "whole numbers"),
    float: ("number", "numbers"),
    bool: ("true or false", "true or false"),
}


def type_text(annotation: Any, *, several: bool = False, article: bool = False) -> str:
    """A type in words: what is allowed there; article: with its article, for sentences.

    >>> type_text(str | list[str]), type_text(Literal["keep", "lower"]), type_text(dict[str, float])
    ('text or list of texts', 'keep or lower', 'mapping of texts to numbers')
    >>> type_text(str | list[str], article=True), type_text(bool, article=True)
    ('a text or a list of texts', 'true or false')
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    a = "a " if article and not several else ""
    if origin is Annotated:
        name = next((mark for mark in arguments[1:] if isinstance(mark, NameOf)), None)
        if name is not None:
            return or_plugin(name.words)
        limits = (limit for field in arguments[1:] for limit in getattr(field, "metadata", ()))
        return type_text(arguments[0], several=several, article=article) + bounds(limits)
    if origin is Literal or is_union(annotation):
        return any_of(_choices(annotation, several=several, article=article))
    if origin is list:
        return f"{a}list of {type_text(arguments[0], several=True)}"
    if origin is tuple:
        return f"{a}list of {len(arguments)} {type_text(arguments[0], several=True)}"
    if origin is dict:
        return f"{a}mapping of {type_text(arguments[0], several=True)} to {type_text(arguments[1], several=True)}"
    if is_settings(annotation):
        return "mappings of keys" if several else f"{a}mapping of keys"
    return ("" if annotation is bool else a) + WORDS[annotation][several]


def or_plugin(words: Sequence[str]) -> str:
    """Names that are allowed, and those of plug-ins.

    >>> or_plugin(["gru", "lstm"]), or_plugin([])
    ('gru, lstm, or one that --plugin brings', 'one that --plugin brings')
    """
    return ", ".join([*words, f"or {PLUGIN_NAME}"]) if words else PLUGIN_NAME


def bounds(limits: Iterable[Any]) -> str:
    """' from 0, below 1', or nothing where a number may be any."""
    words = {"gt": "above", "ge": "from", "lt": "below", "le": "to"}
    pairs = [(word, getattr(limit, name)) for limit in limits for name, word in words.items() if hasattr(limit, name)]
    texts = [f"{word} {value:{',' if isinstance(value, int) else 'g'}}" for word, value in pairs if value != LARGEST]
    return f" {', '.join(texts)}" if texts else ""


def _choices(annotation: Any, *, several: bool = False, article: bool = False) -> list[str]:
    """The words of a literal, the types of a union (without the None that stands for not given), each once."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    if is_union(annotation):
        types_ = [kind for kind in get_args(annotation) if kind is not type(None)]
        return list(dict.fromkeys(word for kind in types_ for word in _choices(kind, several=several, article=article)))
    return [type_text(annotation, several=several, article=article)]


def any_of(words: list[str]) -> str:
    """'a, b or c'"""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def first_line(kind: type) -> str:
    """The first line of a class's docstring; empty where it has none."""
    return next(iter((kind.__doc__ or "").strip().splitlines()), "")


def is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def without_none(annotation: Any) -> Any:
    """The type of a setting where it is given: without the None that stands for not given."""
    others = [kind for kind in get_args(annotation) if kind is not type(None)]
    return others[0] if is_union(annotation) and len(others) == 1 else annotation


def is_settings(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def settings_in(annotation: Any) -> list[type[Settings]]:
    """The classes of settings in an annotation: one, or none."""
    if is_settings(annotation):
        return [annotation]
    return [settings for argument in get_args(annotation) for settings in settings_in(argument)]
