"""Search spaces of `tune`: keys of a recipe with the values that they may take, from a YAML file or from the recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from seq2see.errors import UserError, nearest
from seq2see.files import read_text, shortened
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.load import MOST_BYTES, parse_yaml
from seq2see.recipe.messages import RecipeError
from seq2see.recipe.schema import flatten
from seq2see.registry import Problem
from seq2see.training.variants import LIMITS, MEASURED, NO_EFFECT, SEED, changes_key, overlap

Value = str | int | float | bool
Source = str | Path | Mapping[str, Any] | Recipe


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, whole ones where both are; log: drawn evenly by their logarithm."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def probes(self) -> list[Value]:
        return [self.low, self.high]

    def __contains__(self, value: object) -> bool:
        number = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def rounded(self, value: Value) -> Value:
        """A number with three significant digits, inside the range: no more are meant."""
        if self.whole:
            return int(value)
        return min(max(float(f"{value:.3g}"), self.low), self.high)

    def to_dict(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, **({"log": True} if self.log else {})}


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    values: tuple[Value, ...]

    @property
    def probes(self) -> list[Value]:
        return list(self.values)

    def __contains__(self, value: object) -> bool:
        return any(type(value) is type(other) and value == other for other in self.values)

    def rounded(self, value: Value) -> Value:
        return value

    def to_dict(self) -> dict[str, Any]:
        return {"choices": list(self.values)}


Space = dict[str, Range | Choices]

# ---------------------------------------------------------------- from a file

RANGE_KEYS, CHOICE_KEYS = ("low", "high", "log"), ("choices",)
EXAMPLE = (
    "training.learning_rate: {low: 0.0003, high: 0.003, log: true}, or attention.score: {choices: [dot, additive]}"
)


def read_space(space: str | Path | Mapping[str, Any]) -> tuple[Space, str]:
    """(a search space from a YAML file or a mapping, what messages call it). All problems are named at once."""
    if isinstance(space, Mapping):
        return parse_space(dict(space), origin="space"), "space"
    text = read_text(Path(space), most=MOST_BYTES, what="a search space (a YAML text file)")
    return parse_space(parse_yaml(text, origin=str(space)), origin=str(space)), str(space)


def parse_space(raw: Any, *, origin: str) -> Space:
    """
    >>> parse_space({"encoder.size": {"choices": [64, 128]}}, origin="space")
    {'encoder.size': Choices(values=(64, 128))}
    """
    if not isinstance(raw, dict) or not raw:
        raise UserError(f"{origin}: a mapping from keys of a recipe to values is expected, such as {EXAMPLE}")
    problems: list[Problem] = []
    space: Space = {}
    for key, settings in raw.items():
        try:
            space[str(key)] = _dimension(str(key), settings)
        except RecipeError as error:
            problems += error.problems
    for key in space:
        group = next((other for other in space if key.startswith(f"{other}.")), None)
        if group is not None:
            problems.append(Problem(key, f"{group} is in the space too, and one would undo the other"))
    if problems:
        raise RecipeError(origin, problems)
    return space


def _dimension(key: str, settings: Any) -> Range | Choices:
    def refuse(problem: str, part: str = "") -> RecipeError:
        return RecipeError("space", [Problem(f"{key}.{part}" if part else key, problem)])

    if not isinstance(settings, dict):
        raise refuse(f"{shortened(settings)}: {{low, high, log}} or {{choices: [...]}} is expected")
    allowed = CHOICE_KEYS if "choices" in settings else RANGE_KEYS
    unknown = next((name for name in settings if name not in allowed), None)
    if unknown is not None:
        raise refuse(f"unknown key{nearest(str(unknown), allowed)}; allowed: {', '.join(allowed)}", str(unknown))
    if "choices" in settings:
        return _choices(settings["choices"], refuse)
    for name in ("low", "high"):
        value = settings.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise refuse(f"should be a number, got {shortened(value)}", name)
    low, high, log = settings["low"], settings["high"], settings.get("log", False)
    if not isinstance(log, bool):
        raise refuse(f"should be true or false, got {shortened(log)}", "log")
    if low >= high:
        raise refuse(f"should be above low ({low:g}), got {high:g}", "high")
    if log and low <= 0:
        raise refuse(f"should be above 0 where log is true, got {low:g}", "low")
    return Range(low, high, log)


def _choices(values: Any, refuse: Any) -> Choices:
    if not isinstance(values, list) or len(values) < 2:
        raise refuse(f"should be a list of two values or more, got {shortened(values)}", "choices")
    wrong = next((value for value in values if not isinstance(value, str | int | float | bool)), None)
    if wrong is not None or None in values:
        raise refuse(f"should be texts, numbers, true or false, got {shortened(wrong)}", "choices")
    seen: list[tuple[type, Value]] = []
    for value in values:
        if (type(value), value) in seen:
            raise refuse(f"{shortened(value)} is given twice", "choices")
        seen.append((type(value), value))
    return Choices(tuple(values))


# ---------------------------------------------------------------- against a recipe

TYPE_RULES = ("unknown-key", "type", "value", "kind", "missing")
"""Rules about a single key: a value that breaks one of them cannot work in any combination."""


def override(key: str, value: Value) -> str:
    """`KEY=VALUE` as `--set` takes it.

    >>> override("training.learning_rate", 1e-05), override("attention.score", "dot")
    ('training.learning_rate=1.0e-05', 'attention.score=dot')
    """
    text = yaml.safe_dump(value, default_flow_style=True, width=1 << 20)  # a number is a document, which ends with ...
    return f"{key}={text.removesuffix(chr(10)).removesuffix('...').strip()}"


def check_space(recipe: Source, space: Space, overrides: Sequence[str], *, origin: str) -> None:
    """Refuse keys and values that no trial could have, and keys that would change what is measured."""
    problems: list[Problem] = []
    for key, dimension in space.items():
        if key in (*LIMITS, SEED):
            problems.append(Problem(key, "cannot be searched: the budget and the seed are the same for all trials"))
        elif MEASURED.fullmatch(key):
            problems.append(Problem(key, "trials would be measured on other rows, or by other metrics"))
        elif key in NO_EFFECT:
            problems.append(Problem(key, "has no effect on what is learned"))
        elif changes_key(key, overrides):
            problems.append(
                Problem(key, "is given with --set, so that it has no values to search; leave one of them out")
            )
        else:
            problems += _wrong_values(recipe, key, dimension, overrides)
    if problems:
        raise RecipeError(origin, problems)


def _wrong_values(recipe: Source, key: str, dimension: Range | Choices, overrides: Sequence[str]) -> Iterator[Problem]:
    """The first problem that a value has by itself."""
    for value in dimension.probes:
        own = [
            problem for problem in _problems(recipe, [*overrides, override(key, value)]) if overlap(problem.path, key)
        ]
        wrong = next((problem for problem in own if problem.rule in TYPE_RULES), None)
        if wrong is not None:
            yield wrong
            return


def _problems(recipe: Source, overrides: Iterable[str]) -> list[Problem]:
    try:
        load_recipe(recipe, overrides=overrides)
    except RecipeError as error:
        return error.problems
    return []


# ---------------------------------------------------------------- from the recipe alone

LARGEST_DROPOUT, LARGEST_SMOOTHING = 0.6, 0.2
RATE_FACTOR, BATCH_FACTOR = 5.0, 2


def default_space(recipe: Source, overrides: Sequence[str]) -> Space:
    """What is worth a search in most recipes: learning rate, dropout, sizes, batches and label smoothing, around the
    recipe's own values. Left out are keys that are given with --set, and values that the recipe refuses."""
    resolved = load_recipe(recipe, overrides=overrides)
    space: Space = {}
    for key, dimension in _candidates(resolved).items():
        if changes_key(key, overrides):
            continue
        kept = [value for value in dimension.probes if not _problems(recipe, [*overrides, override(key, value)])]
        if isinstance(dimension, Choices) and len(kept) > 1:
            space[key] = Choices(tuple(kept))
        elif isinstance(dimension, Range) and len(kept) == 2:
            space[key] = dimension
    if not space:
        raise UserError("no key of this recipe is left to search; name some with --space FILE.yaml")
    return space


def _candidates(recipe: Recipe) -> Space:
    settings = dict(flatten(recipe.to_dict()))
    space: Space = {}
    rate, batch = settings["training.learning_rate"], settings["training.batch_tokens"]
    if isinstance(rate, float):
        low, high = _digits(rate / RATE_FACTOR), _digits(rate * RATE_FACTOR)
        space["training.learning_rate"] = Range(low, high, log=True)
    if isinstance(batch, int):
        space["training.batch_tokens"] = Range(max(batch // BATCH_FACTOR, 1), batch * BATCH_FACTOR, log=True)
    shares = {"loss.label_smoothing": LARGEST_SMOOTHING}
    for part in [*recipe.encoders, "decoder"]:
        shares |= {f"{part}.dropout": LARGEST_DROPOUT, f"{part}.embedding.dropout": LARGEST_DROPOUT}
        size = settings.get(f"{part}.size")
        if isinstance(size, int) and size > 1 and not recipe.output.numeric:  # a larger code always copies better
            space[f"{part}.size"] = Choices((size // 2, size, 2 * size))
    for key, largest in shares.items():
        if isinstance(settings.get(key), float):
            space[key] = Range(0.0, max(largest, settings[key]))
    return space


def _digits(number: float) -> float:
    return float(f"{number:.3g}")
