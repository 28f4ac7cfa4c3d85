"""Variants of a recipe: every value of every varied key with every value of the others, and which of them can be
compared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from seq2see.errors import UserError
from seq2see.recipe import Recipe
from seq2see.recipe.schema import flatten

OPENING, CLOSING, QUOTES = "[{", "]}", "\"'"


@dataclass(frozen=True)
class Variant:
    """One variant of a recipe: (key, value as text) for each key that varies, in the order of --vary."""

    changes: tuple[tuple[str, str], ...]

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.changes]

    @property
    def overrides(self) -> list[str]:
        return [f"{key}={value}" for key, value in self.changes]

    def __str__(self) -> str:
        """As short as it is clear.

        >>> str(Variant((("attention.score", "dot"),)))
        'dot'
        >>> str(Variant((("attention.score", "dot"), ("encoder.size", "8"))))
        'score dot, size 8'
        """
        if len(self.changes) == 1:
            return self.changes[0][1]
        last = [key.rpartition(".")[2] for key, _ in self.changes]
        names = last if len(set(last)) == len(last) else [key for key, _ in self.changes]
        return ", ".join(f"{name} {value}" for name, (_, value) in zip(names, self.changes, strict=True))


def variants(vary: Sequence[str]) -> list[Variant]:
    """The variants of --vary KEY=A,B: every value of every key with every value of the others, the last key fastest.

    >>> [str(variant) for variant in variants(["attention.score=dot,none", "decoder.size=8,9"])]
    ['score dot, size 8', 'score dot, size 9', 'score none, size 8', 'score none, size 9']
    """
    axes: dict[str, list[str]] = {}
    for option in vary:
        key, values = _axis(option)
        clash = next((other for other in axes if overlap(key, other)), None)
        if clash is not None:
            raise UserError(f"--vary {option}: {clash} varies already, and one would undo the other")
        axes[key] = values
    if not axes:
        raise UserError("nothing varies: give --vary KEY=A,B, for example --vary attention.score=dot,additive,none")
    return [Variant(tuple(zip(axes, values, strict=True))) for values in product(*axes.values())]


def _axis(option: str) -> tuple[str, list[str]]:
    key, equals, text = option.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--vary {option}: not KEY=A,B, for example attention.score=dot,additive,none")
    values = separated(text)
    if not all(values):
        raise UserError(f"--vary {option}: a value is missing next to a comma")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise UserError(f"--vary {option}: '{twice}' is given twice")
    return key.strip(), values


def separated(text: str) -> list[str]:
    """Values between commas; a comma inside brackets or quotes belongs to its value.

    >>> separated("8, [a, b],{x: 1, y: 2}")
    ['8', '[a, b]', '{x: 1, y: 2}']
    """
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        else:
            depth += (letter in OPENING) - (letter in CLOSING)
        if letter == "," and depth == 0 and not quote:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]


# ---------------------------------------------------------------- checks

MEASURED = re.compile(
    r"(data|evaluation)\..*|training\.dev_rows|loss\.alignment\.column"
    r"|inputs\.[^.]+\.column|output\.(kind|column|made|case|punctuation|unicode)"
)
"""Keys that determine which rows are measured, against which outputs and by which metrics."""

NO_EFFECT = (
    "task",
    "description",
    "training.samples",
    "training.tensorboard",
    "training.checkpoint_every",
    "training.checkpoint_seconds",
    "training.wait_minutes",
)
"""Keys that have no effect on the trained model."""


def check_comparable(recipes: Mapping[Variant, Recipe]) -> None:
    """Refuse variants whose metrics cannot be compared, and variants that are equal."""
    settings = {variant: dict(flatten(recipe.to_dict())) for variant, recipe in recipes.items()}
    for key in next(iter(recipes)).keys:
        changed = [path for path in _differing(list(settings.values())) if f"{path}.".startswith(f"{key}.")]
        measured = [path for path in changed if MEASURED.fullmatch(path)]
        if measured:
            raise UserError(
                f"--vary {key}: variants would be measured on other rows, or by other measures, and could not be "
                f"compared; give {measured[0]} one value, with --set"
            )
        if changed and all(path in NO_EFFECT for path in changed):
            raise UserError(f"--vary {key}: has no effect on what is learned, so all variants would be the same")
    _check_duplicates(settings)


def _check_duplicates(settings: Mapping[Variant, Mapping[str, Any]]) -> None:
    seen: dict[str, Variant] = {}
    for variant, values in settings.items():
        learned = {path: value for path, value in values.items() if path not in NO_EFFECT}
        first = seen.setdefault(json.dumps(learned, sort_keys=True), variant)
        if first is not variant:
            raise UserError(f"--vary: '{first}' and '{variant}' are the same recipe; leave one of them out")


def _differing(settings: list[dict[str, Any]]) -> list[str]:
    paths = dict.fromkeys(path for values in settings for path in values)
    return [path for path in paths if any(values.get(path) != settings[0].get(path) for values in settings)]


LIMITS = ("training.epochs", "training.updates", "training.minutes")
SEED, PATIENCE = "training.seed", "training.patience"


def names_key(key: str, overrides: Sequence[str]) -> bool:
    """Whether one of these `KEY=...` sets the key, or a group that contains it."""
    return any(f"{key}.".startswith(f"{other}.") for other in map(_key, overrides))


def changes_key(key: str, overrides: Sequence[str]) -> bool:
    """Whether one of these `KEY=...` sets the key, a group that contains it, or a part of it.

    >>> names_key("encoder.size", ["encoder.size.x=1"]), changes_key("encoder.size", ["encoder.size.x=1"])
    (False, True)
    """
    return any(overlap(key, other) for other in map(_key, overrides))


def overlap(one: str, other: str) -> bool:
    """Whether two keys are the same, or one is a group that contains the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _key(override: str) -> str:
    return override.partition("=")[0].strip()
