"""Recipes with mistakes, and the problems that are found in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.messages import RecipeError
from seq2see.registry import Problem

ONE: dict[str, Any] = {"inputs": {"source": {}}}
TWO: dict[str, Any] = {"inputs": {"a": {}, "b": {}}}
LABEL: dict[str, Any] = {**ONE, "output": {"kind": "label"}}

Source = str | Path | Mapping[Any, Any] | Recipe


def find_problems(recipe: Source, *overrides: str) -> list[Problem]:
    """All problems of a recipe that is refused."""
    with pytest.raises(RecipeError) as error:
        load_recipe(recipe, overrides=overrides)
    return error.value.problems


def problems_of(recipe: Source, *overrides: str) -> list[tuple[str, str]]:
    """(path, rule) of all problems of a recipe that is refused."""
    return [(problem.path, problem.rule) for problem in find_problems(recipe, *overrides)]


def message_of(recipe: Source, *overrides: str) -> str:
    """The message of a recipe that is refused, as a user reads it."""
    with pytest.raises(UserError) as error:
        load_recipe(recipe, overrides=overrides)
    return str(error.value)


def mentions(message: str, fact: str) -> bool:
    """Whether a message has that word, number or key, not as a part of another."""
    return re.search(rf"(?<![\w-]){re.escape(fact)}(?![\w-])", message) is not None


@dataclass(frozen=True)
class Refused:
    """A recipe that is refused.

    problems: {path: rule}, all that are found; facts: what their messages mention, besides the paths: the value, the
    setting that it does not agree with, what is allowed, the nearest spelling.
    """

    recipe: Source
    problems: Mapping[str, str]
    facts: str = ""
    overrides: Sequence[str] = ()

    def __str__(self) -> str:
        return ", ".join(f"{path} ({rule})" for path, rule in self.problems.items())

    def find_problems(self) -> list[Problem]:
        """All problems of the recipe."""
        return find_problems(self.recipe, *self.overrides)

    def check(self) -> None:
        """Fail unless these problems are found, no others, and with these facts."""
        problems = self.find_problems()
        pairs = sorted((problem.path, problem.rule) for problem in problems)
        assert pairs == sorted(self.problems.items()), pairs
        messages = "\n".join(problem.message for problem in problems)
        missing = [fact for fact in self.facts.split() if not mentions(messages, fact)]
        assert not missing, f"{missing} not in: {messages}"
