"""What clients may say, checked by type and range; every message names the key, the value and what is allowed."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seq2see.errors import UserError, nearest

Symbols = str | list[str]
Weights = list[float] | dict[str, list[float]]
Width = Annotated[int, Field(ge=1, le=64)]
Body = TypeVar("Body", bound="Asked")

INPUT = (
    "one input: a text, or {name: value} where the model reads several; a value is a text, a list of texts or numbers "
    "where the kind allows it, a data: URL for an image or a sound, or {example: number}"
)


class Asked(BaseModel):
    """What every request says: which model, and of what."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    model: str | None = Field(None, description="name of the model; not needed where one is served")
    input: Any = Field(None, description=INPUT)


class Searching(Asked):
    """How an output is searched for; what is not given is as the model's recipe says."""

    beam: Width | None = Field(None, description="hypotheses the search keeps; 1: greedy")
    n_best: Width | None = Field(None, description="outputs told for each input (not given: all of the beam)")
    sample: bool | None = Field(None, description="draw outputs instead of searching for the best")
    temperature: float | None = Field(None, description="of sample: below 1 safer, above 1 bolder")
    top_k: int | None = Field(None, description="sample from the so many likeliest symbols")
    top_p: float | None = Field(None, description="sample from the likeliest symbols that hold so much probability")
    seed: int | None = Field(None, description="of sample: same seed, same outputs")
    min_length: int | None = Field(None, ge=0, le=2000, description="outputs of at least so many tokens")
    max_length: int | None = Field(None, ge=1, le=2000, description="outputs of at most so many tokens")
    length_penalty: float | None = Field(None, description="score = log_probability / length ** length_penalty")
    coverage_penalty: float | None = Field(None, description="outputs that overlook places rank lower")
    avoid_unknown: bool | None = Field(None, description="<unk> is not said")
    replace_unknown: bool | None = Field(None, description="<unk> is shown as the input's word most looked at")
    runners_up: int | None = Field(None, ge=0, le=50, description="likeliest symbols told at each step")
    prefix: Symbols | None = Field(
        None, description="what the output begins with: a text, or symbols as `tokens` tells them; then it goes on"
    )
    oracle: dict[str, Weights] | None = Field(
        None, description="attention by step (from 0): one weight for each place, or {input: weights}; each sums to 1"
    )
    maps: bool = Field(False, description="looks tell heads and layers apart, and sequences looking at themselves")


class Predict(Searching):
    """What does the model say of an input?"""

    inputs: list[Any] | None = Field(None, description="several inputs, in place of `input`")
    target: Symbols | None = Field(None, description="follow this output instead of searching for one")
    looks: bool = Field(True, description="tell where the model looked")
    shown: bool = Field(True, description="tell inputs as the model reads them: spans of words, pictures, sentences")


class Oracle(Searching):
    """What would it have said, had it looked elsewhere?"""

    said: list[str] | None = Field(
        None, description="symbols of the output that was edited (not given: the model's own are found first)"
    )
    shown: bool = Field(True, description="as for predict")


class Explain(Asked):
    """One decoding step with its numbers."""

    step: int = Field(0, ge=0, description="the step, counted from 0")
    beam: Width | None = Field(None, description="hypotheses the search keeps; 1: greedy")
    target: Symbols | None = Field(None, description="while writing this instead of the model's own output")
    oracle: dict[str, Weights] | None = Field(None, description="attention by step, as for predict")


class Pair(BaseModel):
    """An input with an output."""

    model_config = ConfigDict(extra="forbid", strict=True)

    input: Any = Field(None, description=INPUT)
    output: str = Field(description="the output whose probability is asked for")


class Score(Asked):
    """How likely are given outputs?"""

    output: str | None = Field(None, description="the output of `input`")
    rows: list[Pair] | None = Field(None, description="several pairs, in place of `input` and `output`")


def checked(kind: type[Body], given: Any) -> Body:
    """A body of that kind, or a message with all that is wrong."""
    if not isinstance(given, dict):
        raise UserError(f"the body should be a JSON object, got {_short(given)}; keys: {', '.join(kind.model_fields)}")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        said = dict.fromkeys(_said(one, kind) for one in error.errors())
        raise UserError("; ".join(said)) from None


def _said(error: Any, kind: type[BaseModel]) -> str:
    keys = [str(part) for part in error["loc"] if not _branch(part)]
    path = ".".join(keys)
    if error["type"] == "extra_forbidden":
        allowed = list((Pair if keys[:1] == ["rows"] else kind).model_fields)
        return f"unknown key '{path}'{nearest(keys[-1], allowed)}; allowed: {', '.join(allowed)}"
    if error["type"] == "missing":
        return f"{path}: missing"
    message = str(error["msg"]).replace("Input should be", "should be").replace("valid ", "")
    return f"{path}: {message}, got {_short(error['input'])}"


def _branch(part: str | int) -> bool:
    """Whether a part of pydantic's location names a type among several, and no key."""
    return isinstance(part, str) and (part in ("str", "float", "int") or "[" in part)


def _short(value: Any, most: int = 80) -> str:
    said = repr(value)
    return said if len(said) <= most else f"{said[: most - 1]}…"
