"""Schemas of requests (pydantic); every message names the key, the value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from seq2see.errors import nearest
from seq2see.files import shortened
from seq2see.search.options import COLDEST, HOTTEST, STRONGEST
from seq2see.studio.http import InvalidRequest

MAX_STEPS = 2000
"""Tokens of an output."""
MAX_NEAREST = 100
"""Training rows of one answer."""
MAX_PREFIXES = 256
"""Prefixes that a search avoids."""
LISTED = 10
"""Problems that one message lists; it gives the number of the others."""
LARGEST = (1 << 63) - 1
INTEGERS = ("beam", "n_best", "top_k", "seed", "min_length", "max_length", "runners_up", "step", "after", "k")

INPUT = (
    "one input: a text, or {name: value} where the model reads several; a value is a text, a list of texts or numbers "
    "where the kind allows it, a data: URL for an image or a sound, or {example: number}"
)
STEP = re.compile(r"0|[1-9][0-9]{0,3}")
WEIGHTS = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 1}


def _nested(path: Iterable[object], message: str) -> PydanticCustomError:
    """A problem inside a value; pydantic's own locations would name branches of a union like keys."""
    return PydanticCustomError("nested", "{message}", {"path": [str(part) for part in path], "message": message})


def _check_symbols(value: object) -> str | list[str]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise _nested((), f"should be a string or a list of strings, got {shortened(value)}")
    for number, symbol in enumerate(value):
        _check_symbol([number], symbol)
    return value


def _check_symbol(path: list[object], symbol: object) -> None:
    if not symbol or not isinstance(symbol, str):
        raise _nested(path, f"should be a string that is not empty, got {shortened(symbol)}")


def _check_prefixes(value: object) -> list[str | list[str]]:
    if not isinstance(value, list):
        raise _nested((), f"should be a list of prefixes, got {shortened(value)}")
    if len(value) > MAX_PREFIXES:
        raise _nested((), f"{len(value):,} prefixes; allowed: at most {MAX_PREFIXES}")
    for number, prefix in enumerate(value):
        if not prefix or not isinstance(prefix, str | list):
            raise _nested([number], f"should be a string or a list of strings, not empty, got {shortened(prefix)}")
        for place, symbol in enumerate(prefix):
            _check_symbol([number, place], symbol)
    return value


def _check_attention(value: object) -> dict[str, Any]:
    """{step: weights} or {step: {input: weights}}; the number of places is checked later, when the input is read."""
    if not isinstance(value, dict):
        raise _nested((), f"should be an object {{step: weights}}, got {shortened(value)}")
    if len(value) > MAX_STEPS:
        raise _nested((), f"{len(value):,} steps; allowed: at most {MAX_STEPS:,}")
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


SYMBOL = {"type": "string", "minLength": 1}
Symbols = str | list[str]
SymbolsField = Annotated[
    Symbols,
    PlainValidator(_check_symbols),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": SYMBOL}]}),
]
Prefixes = Annotated[
    list[Symbols],
    PlainValidator(_check_prefixes),
    WithJsonSchema(
        {
            "type": "array",
            "maxItems": MAX_PREFIXES,
            "items": {
                "anyOf": [SYMBOL, {"type": "array", "items": SYMBOL, "minItems": 1}],
            },
        }
    ),
]
Attention = Annotated[
    dict[str, Any],
    PlainValidator(_check_attention),
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": MAX_STEPS,
            "patternProperties": {f"^({STEP.pattern})$": {"anyOf": [WEIGHTS, {"type": "object"}]}},
            "additionalProperties": False,
        }
    ),
]
Width = Annotated[int, Field(ge=1, le=64)]
Body = TypeVar("Body", bound="ModelRequest")


class ModelRequest(BaseModel):
    """What every request has: a model and an input."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=(), allow_inf_nan=False)

    model: str | None = Field(None, description="name of the model; not needed where one is served")
    input: Any = Field(None, description=INPUT)

    @field_validator(*INTEGERS, mode="before", check_fields=False)
    @classmethod
    def _read_integer(cls, value: object) -> object:
        """5.0 is an integer in JSON."""
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @property
    def row_count(self) -> int:
        """Inputs that the request has."""
        several = getattr(self, "inputs", None) or getattr(self, "rows", None)
        return 1 if several is None else len(several)


class SearchRequest(ModelRequest):
    """Options of the search; the default of each is the model's recipe."""

    beam: Width | None = Field(None, description="hypotheses the search keeps; 1: greedy")
    n_best: Width | None = Field(None, description="outputs returned for each input (default: all of the beam)")
    sample: bool | None = Field(None, description="sample outputs instead of searching for the best")
    temperature: float | None = Field(
        None, ge=COLDEST, le=HOTTEST, description="temperature of sampling: below 1 safer, above 1 bolder"
    )
    top_k: int | None = Field(
        None, ge=0, le=LARGEST, description="sample from this many likeliest symbols; 0: from all of them"
    )
    top_p: float | None = Field(
        None, gt=0, le=1, description="sample from the likeliest symbols that together have this probability"
    )
    seed: int | None = Field(None, ge=0, le=LARGEST, description="seed of sampling: same seed, same outputs")
    min_length: int | None = Field(None, ge=0, le=MAX_STEPS, description="minimum number of tokens of an output")
    max_length: int | None = Field(None, ge=1, le=MAX_STEPS, description="maximum number of tokens of an output")
    length_penalty: float | None = Field(
        None, ge=0, le=STRONGEST["length_penalty"], description="score = log_probability / length ** length_penalty"
    )
    coverage_penalty: float | None = Field(
        None, ge=0, le=STRONGEST["coverage_penalty"], description="ranks outputs lower that overlook places"
    )
    avoid_unknown: bool | None = Field(None, description="never write <unk>")
    replace_unknown: bool | None = Field(None, description="show <unk> as the input's word with the largest weight")
    runners_up: int | None = Field(None, ge=0, le=50, description="likeliest symbols returned for each step")
    prefix: SymbolsField | None = Field(
        None, description="beginning of the output: a text, or symbols as in `tokens`; the model continues it"
    )
    avoid_prefixes: Prefixes | None = Field(
        None, description="beginnings that no output has, each as for `prefix`: the search takes other branches"
    )
    oracle: Attention | None = Field(
        None, description="attention by step (from 0): one weight for each place, or {input: weights}; each sums to 1"
    )
    maps: bool = Field(False, description="return looks by head and layer, and self-attention")


class PredictRequest(SearchRequest):
    """Predict outputs of one or several inputs, with where the model looked."""

    inputs: list[Any] | None = Field(None, description="several inputs, in place of `input`")
    after: int | None = Field(
        None,
        ge=0,
        le=LARGEST,
        description="answer one page of `inputs`, from this number on (from 0); `next` in the answer is the next page",
    )
    target: SymbolsField | None = Field(None, description="force this output instead of searching for one")
    tree: bool = Field(False, description="return the beam tree: every continuation considered; needs a beam above 1")
    looks: bool = Field(True, description="return where the model looked")
    shown: bool = Field(True, description="return inputs as the model reads them: spans of words, pictures, sentences")


class StreamRequest(SearchRequest):
    """Predict one output and send its tokens as they are written (server-sent events); greedy, or sampled."""

    looks: bool = Field(True, description="return where the model looked, at the end")
    shown: bool = Field(True, description="return the input as the model reads it, at the end")


class OracleRequest(SearchRequest):
    """Edit the attention, and compare the output before and after."""

    said: Annotated[list[Annotated[str, Field(min_length=1)]], Field(fail_fast=True)] | None = Field(
        None, description="symbols of the output that was edited (default: the model's own output)"
    )
    shown: bool = Field(True, description="as for predict")


class ExplainRequest(ModelRequest):
    """Explain one decoding step with its numbers."""

    step: int = Field(0, ge=0, lt=MAX_STEPS, description="the step, counted from 0")
    beam: Width | None = Field(None, description="hypotheses the search keeps; 1: greedy")
    target: SymbolsField | None = Field(None, description="force this output instead of the model's own")
    oracle: Attention | None = Field(None, description="attention by step, as for predict")


class NearestRequest(ModelRequest):
    """Find the training rows nearest to an input, or to one step of its output."""

    step: int | None = Field(
        None, ge=0, lt=MAX_STEPS, description="compare the decoder's state at this step, counted from 0, not the input"
    )
    k: int = Field(5, ge=1, le=MAX_NEAREST, description="rows returned, the nearest first")
    beam: Width | None = Field(None, description="hypotheses of the search for the output; 1: greedy; needs step")
    target: SymbolsField | None = Field(None, description="this output instead of the model's own; needs step")


class ScoreRow(BaseModel):
    """An input with an output."""

    model_config = ConfigDict(extra="forbid", strict=True)

    input: Any = Field(None, description=INPUT)
    output: str = Field(description="the output to score")


class ScoreRequest(ModelRequest):
    """Score given outputs: their probability."""

    output: str | None = Field(None, description="the output of `input`")
    rows: list[ScoreRow] | None = Field(None, description="several pairs, in place of `input` and `output`")


def validate(schema: type[Body], record: Any, *, rows: int = 1024) -> Body:
    """A request of that schema; an InvalidRequest lists the first problems. rows: pairs that a body may have.

    Unknown keys are found before pydantic validates anything, and lists end at their first problem, so that a body of a
    million mistakes costs no more than one of a few.
    """
    if not isinstance(record, dict):
        names = ", ".join(schema.model_fields)
        raise InvalidRequest(f"the body should be a JSON object, got {shortened(record)}; keys: {names}")
    pairs = record.get("rows")
    if isinstance(pairs, list) and len(pairs) > rows:
        raise InvalidRequest(f"rows: {len(pairs):,} given; allowed: 1 to {rows}")
    _check_keys(record, schema, "")
    for number, pair in enumerate(pairs if isinstance(pairs, list) else ()):
        if isinstance(pair, dict):
            _check_keys(pair, ScoreRow, f"rows.{number}.")
    try:
        return schema.model_validate(record)
    except ValidationError as error:
        problems = map(_describe_problem, error.errors(include_url=False))
        raise InvalidRequest(_join_problems(problems, error.error_count())) from None


def _check_keys(record: Mapping[str, Any], schema: type[BaseModel], path: str) -> None:
    """Find unknown keys before pydantic does, which would make a record of each of them."""
    allowed = list(schema.model_fields)
    unknown = record.keys() - set(allowed)
    if unknown:
        keys = (key for key in record if key in unknown)
        problems = (f"unknown key '{path}{shortened(key, quotes=False)}'{nearest(key, allowed)}" for key in keys)
        raise InvalidRequest(f"{_join_problems(problems, len(unknown))}; allowed: {', '.join(allowed)}")


def _join_problems(problems: Iterable[str], count: int) -> str:
    """The first problems, without repeats, and how many more there are."""
    first = list(islice(problems, LISTED))
    more = [f"... and {count - len(first):,} more"] if count > len(first) else []
    return "; ".join([*dict.fromkeys(first), *more])


def _describe_problem(error: Mapping[str, Any]) -> str:
    path = ".".join(map(str, error["loc"]))
    if error["type"] == "nested":
        inner = [shortened(part, quotes=False) for part in error["ctx"]["path"]]
        return f"{'.'.join([path, *inner])}: {error['ctx']['message']}"
    if error["type"] == "missing":
        return f"{path}: missing"
    message = str(error["msg"]).replace("Input should be", "should be").replace("valid ", "")
    message = message.replace("a integer", "an integer")
    return f"{path}: {message}, got {shortened(error['input'])}"
