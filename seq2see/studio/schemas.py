"""Schemas of requests, checked by type and range; every message names the key, the value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from seq2see.errors import UserError, nearest
from seq2see.files import shortened
from seq2see.search.options import COLDEST, HOTTEST, STRONGEST

LENGTH = 2000
"""Tokens of an output at most, and so its steps."""
SHOWN = 10
"""Problems that one answer lists; of the others it gives the number."""
LARGEST = (1 << 63) - 1
WHOLE = ("beam", "n_best", "top_k", "seed", "min_length", "max_length", "runners_up", "step")

INPUT = (
    "one input: a text, or {name: value} where the model reads several; a value is a text, a list of texts or numbers "
    "where the kind allows it, a data: URL for an image or a sound, or {example: number}"
)
STEP = re.compile(r"0|[1-9][0-9]{0,3}")
WEIGHTS = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 1}


class Invalid(UserError):
    """The body breaks its own schema (422); what only this model or this input speaks against is another UserError."""


def _nested(path: Iterable[object], message: str) -> PydanticCustomError:
    """A problem within a value: pydantic's own locations would name branches of a union like keys."""
    return PydanticCustomError("nested", "{message}", {"path": [str(part) for part in path], "message": message})


def _symbols(value: object) -> str | list[str]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise _nested((), f"should be a string or a list of strings, got {shortened(value)}")
    for number, symbol in enumerate(value):
        if not isinstance(symbol, str):
            raise _nested([number], f"should be a string, got {shortened(symbol)}")
    return value


def _attention(value: object) -> dict[str, Any]:
    """{step: weights} or {step: {input: weights}}; how many places there are is known later."""
    if not isinstance(value, dict):
        raise _nested((), f"should be an object {{step: weights}}, got {shortened(value)}")
    if len(value) > LENGTH:
        raise _nested((), f"{len(value):,} steps; allowed: at most {LENGTH:,}")
    for step, weights in value.items():
        if not STEP.fullmatch(step):
            raise _nested((), f"step {shortened(step)}; steps are whole numbers, counted from 0, below 10,000")
        maps = weights if isinstance(weights, dict) else {None: weights}
        for name, numbers in maps.items():
            _check_weights([step] if name is None else [step, name], numbers)
        if not maps:
            raise _nested([step], "no weights; give a list, one for each place, or {input: weights}")
    return value


def _check_weights(path: list[str], numbers: object) -> None:
    if not isinstance(numbers, list) or not numbers:
        raise _nested(path, f"should be a list of weights, one for each place, got {shortened(numbers)}")
    for place, number in enumerate(numbers):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise _nested([*path, place], f"should be a number, got {shortened(number)}")
        if not 0 <= number <= 1:
            raise _nested([*path, place], f"weights must be numbers from 0 to 1, got {shortened(number)}")


Symbols = str | list[str]
SymbolsField = Annotated[
    Symbols,
    PlainValidator(_symbols),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Attention = Annotated[
    dict[str, Any],
    PlainValidator(_attention),
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": LENGTH,
            "patternProperties": {f"^({STEP.pattern})$": {"anyOf": [WEIGHTS, {"type": "object"}]}},
            "additionalProperties": False,
        }
    ),
]
Width = Annotated[int, Field(ge=1, le=64)]
Body = TypeVar("Body", bound="Asked")


class Asked(BaseModel):
    """What every request says: which model, and of what."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=(), allow_inf_nan=False)

    model: str | None = Field(None, description="name of the model; not needed where one is served")
    input: Any = Field(None, description=INPUT)

    @field_validator(*WHOLE, mode="before", check_fields=False)
    @classmethod
    def _whole(cls, value: object) -> object:
        """5.0 is an integer in JSON."""
        return int(value) if isinstance(value, float) and value.is_integer() else value


class Searching(Asked):
    """How an output is searched for; what is not given is as the model's recipe says."""

    beam: Width | None = Field(None, description="hypotheses the search keeps; 1: greedy")
    n_best: Width | None = Field(None, description="outputs told for each input (not given: all of the beam)")
    sample: bool | None = Field(None, description="draw outputs instead of searching for the best")
    temperature: float | None = Field(
        None, ge=COLDEST, le=HOTTEST, description="of sample: below 1 safer, above 1 bolder"
    )
    top_k: int | None = Field(
        None, ge=0, le=LARGEST, description="sample from the so many likeliest symbols; 0: from all of them"
    )
    top_p: float | None = Field(
        None, gt=0, le=1, description="sample from the likeliest symbols that hold so much probability"
    )
    seed: int | None = Field(None, ge=0, le=LARGEST, description="of sample: same seed, same outputs")
    min_length: int | None = Field(None, ge=0, le=LENGTH, description="outputs of at least so many tokens")
    max_length: int | None = Field(None, ge=1, le=LENGTH, description="outputs of at most so many tokens")
    length_penalty: float | None = Field(
        None, ge=0, le=STRONGEST["length_penalty"], description="score = log_probability / length ** length_penalty"
    )
    coverage_penalty: float | None = Field(
        None, ge=0, le=STRONGEST["coverage_penalty"], description="outputs that overlook places rank lower"
    )
    avoid_unknown: bool | None = Field(None, description="<unk> is not said")
    replace_unknown: bool | None = Field(None, description="<unk> is shown as the input's word most looked at")
    runners_up: int | None = Field(None, ge=0, le=50, description="likeliest symbols told at each step")
    prefix: SymbolsField | None = Field(
        None, description="what the output begins with: a text, or symbols as `tokens` tells them; then it goes on"
    )
    oracle: Attention | None = Field(
        None, description="attention by step (from 0): one weight for each place, or {input: weights}; each sums to 1"
    )
    maps: bool = Field(False, description="looks tell heads and layers apart, and sequences looking at themselves")


class Predict(Searching):
    """What does the model say of an input?"""

    inputs: list[Any] | None = Field(None, description="several inputs, in place of `input`")
    target: SymbolsField | None = Field(None, description="follow this output instead of searching for one")
    looks: bool = Field(True, description="tell where the model looked")
    shown: bool = Field(True, description="tell inputs as the model reads them: spans of words, pictures, sentences")


class Oracle(Searching):
    """What would it have said, had it looked elsewhere?"""

    said: Annotated[list[str], Field(fail_fast=True)] | None = Field(
        None, description="symbols of the output that was edited (not given: the model's own are found first)"
    )
    shown: bool = Field(True, description="as for predict")


class Explain(Asked):
    """One decoding step with its numbers."""

    step: int = Field(0, ge=0, lt=LENGTH, description="the step, counted from 0")
    beam: Width | None = Field(None, description="hypotheses the search keeps; 1: greedy")
    target: SymbolsField | None = Field(None, description="while writing this instead of the model's own output")
    oracle: Attention | None = Field(None, description="attention by step, as for predict")


class Pair(BaseModel):
    """An input with an output."""

    model_config = ConfigDict(extra="forbid", strict=True)

    input: Any = Field(None, description=INPUT)
    output: str = Field(description="the output whose probability is asked for")


class Score(Asked):
    """How likely are given outputs?"""

    output: str | None = Field(None, description="the output of `input`")
    rows: list[Pair] | None = Field(None, description="several pairs, in place of `input` and `output`")


def checked(kind: type[Body], given: Any, *, rows: int = 1024) -> Body:
    """A body of that kind, or a message that lists what is wrong, the first of it where it is much.

    rows: pairs that a body may have. Unknown keys are found before anything is validated, and lists end at their first
    fault, so that a body of a million mistakes costs no more than one of a few.
    """
    if not isinstance(given, dict):
        names = ", ".join(kind.model_fields)
        raise Invalid(f"the body should be a JSON object, got {shortened(given)}; keys: {names}")
    pairs = given.get("rows")
    if isinstance(pairs, list) and len(pairs) > rows:
        raise Invalid(f"rows: {len(pairs):,} given; allowed: 1 to {rows}")
    _check_keys(given, kind, "")
    for number, pair in enumerate(pairs if isinstance(pairs, list) else ()):
        if isinstance(pair, dict):
            _check_keys(pair, Pair, f"rows.{number}.")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise Invalid(_listed(map(_problem, error.errors(include_url=False)), error.error_count())) from None


def _check_keys(given: Mapping[str, Any], owner: type[BaseModel], path: str) -> None:
    """Before pydantic does, which would make a record of each unknown key, however many there are."""
    allowed = list(owner.model_fields)
    unknown = given.keys() - set(allowed)
    if unknown:
        keys = (key for key in given if key in unknown)
        problems = (f"unknown key '{path}{shortened(key, quotes=False)}'{nearest(key, allowed)}" for key in keys)
        raise Invalid(f"{_listed(problems, len(unknown))}; allowed: {', '.join(allowed)}")


def _listed(problems: Iterable[str], count: int) -> str:
    """The first problems, without repeats, and how many more there are."""
    shown = list(islice(problems, SHOWN))
    more = [f"... and {count - len(shown):,} more"] if count > len(shown) else []
    return "; ".join([*dict.fromkeys(shown), *more])


def _problem(error: Mapping[str, Any]) -> str:
    path = ".".join(map(str, error["loc"]))
    if error["type"] == "nested":
        inner = [shortened(part, quotes=False) for part in error["ctx"]["path"]]
        return f"{'.'.join([path, *inner])}: {error['ctx']['message']}"
    if error["type"] == "missing":
        return f"{path}: missing"
    message = str(error["msg"]).replace("Input should be", "should be").replace("valid ", "")
    return f"{path}: {message}, got {shortened(error['input'])}"
