"""What settings are made of: types with limits, groups of keys that several parts share, types in a reader's words."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

# ---------------- What settings are made of

Tokens = Literal["word", "character", "symbol", "bpe"]
Activation = Literal["relu", "tanh", "logistic", "linear"]
CellKind = Literal["rnn", "gru", "lstm"]
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


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True, allow_inf_nan=False)


class ColumnSettings(Settings):
    """Settings of an input or an output, which is a column of the table.

    file: its values are paths of files.
    """

    file: ClassVar[bool] = False

    if TYPE_CHECKING:
        kind: str
        column: str | None

    @property
    def sized_by_data(self) -> bool:
        """Whether only data tell how many symbols, labels or numbers it has."""
        return False


class InputColumn(ColumnSettings):
    """Settings of an input; each kind of input states its properties here.

    usual_encoder: the kind of encoder that reads it where the recipe names none; not given: the recipe's own, one for
    texts; one_place: there is nothing to choose from in it, so nothing to look at; reversible: it can be read from its
    end to its beginning; copied_part: which of its further places hold the symbols that can be copied.
    """

    usual_encoder: ClassVar[str | None] = None
    one_place: ClassVar[bool] = False
    reversible: ClassVar[bool] = False
    copied_part: ClassVar[str] = ""

    if TYPE_CHECKING:
        encoder: Any

    @property
    def noise_note(self) -> str:
        """The noise that is added to it while a model is trained; nothing where there is none."""
        return ""


class OutputColumn(ColumnSettings):
    """Settings of an output; each kind of output states its properties here.

    said: what it is called; one_step: it is given whole, by a decoder that reads no symbol; numeric: it is made of
    numbers, which are near or far from the right ones and have no probability; classes: it is one of several labels;
    measured_as: which metrics and baselines fit it; correct: the metric that tells whether an output is right.
    """

    said: ClassVar[str] = "an output"
    one_step: ClassVar[bool] = True
    numeric: ClassVar[bool] = False
    classes: ClassVar[bool] = False
    measured_as: ClassVar[Literal["text", "label", "numbers"]] = "label"
    correct: ClassVar[str] = "exact"

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """Channels, height and width of what is a picture; None where it is none."""
        return None

    @property
    def generated(self) -> str | None:
        """What outputs tell that no column holds; None where a column holds them."""
        return None


class TextSettings(ColumnSettings):
    """How the text of one column becomes symbols."""

    column: str | None = Field(None, description="column of the table; not given: the input's name, or `output`")
    tokens: Tokens = Field("word", description="what one symbol is; symbol: what stands between spaces")
    vocabulary: Count = Field(
        0, description="at most so many symbols, the most frequent ones; 0: no limit (bpe: 8,000)"
    )
    min_count: Positive = Field(1, description="rarer symbols become <unk>")
    case: Literal["keep", "lower"] = Field("keep", description="lower: letters become lower case")
    punctuation: Literal["keep", "drop"] = Field(
        "keep", description="drop: marks of punctuation are not read or written"
    )
    unicode: Literal["none", "NFC", "NFD", "NFKC", "NFKD"] = Field("NFC", description="normal form of the text")
    max_length: Count = Field(
        0,
        description="inputs are cut after so many symbols, rows with longer outputs leave training; 0: no limit",
    )
    share: str | None = Field(None, description="use the vocabulary (and, between inputs, the encoder) of this input")

    @property
    def sized_by_data(self) -> bool:
        return True


class EmbeddingSettings(Settings):
    """e(y): symbols as vectors."""

    kind: Literal["learned", "one-hot", "pretrained"] = Field("learned", description="where the vectors come from")
    size: Size = Field(128, description="size of a learned embedding; one-hot and pretrained ones bring their own")
    path: str | None = Field(None, description="pretrained: text file of vectors (word2vec, GloVe or fastText)")
    tuned: bool = Field(True, description="pretrained: go on learning; false: frozen")
    dropout: Share = Field(0.0, description="on the vectors")


class CellSettings(Settings):
    """A recurrent network of one or more layers."""

    cell: CellKind = Field("gru", description="plain recurrent, GRU or LSTM")
    activation: Literal["tanh", "logistic"] = Field(
        "tanh", description="of the plain recurrent cell and the GRU's candidate"
    )
    reset: Literal["after", "before"] = Field(
        "after", description="GRU: reset gate applied after the product (torch's form) or before it (the textbook's)"
    )
    size: Size = Field(256, description="size of a state (of each direction, where there are two)")
    layers: Layers = Field(1, description="one above the other")
    dropout: Share = Field(0.0, description="between layers and on the output of the last")


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
