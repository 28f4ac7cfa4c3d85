"""`key.path=value`: one setting of a recipe changed, and what loses its meaning with it dropped."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import yaml
from pydantic import ValidationError

from seq2see.errors import UserError
from seq2see.recipe.inert import inert
from seq2see.recipe.kinds import settings_in
from seq2see.recipe.measures import unfit
from seq2see.recipe.resolve import inherited, resolved, unconditioned
from seq2see.recipe.schema import Recipe

Raw = dict[str, Any]


def overridden(raw: Raw, overrides: Iterable[str]) -> Raw:
    """A copy of the raw recipe with the overrides; settings of the recipe that they make meaningless are left out.

    Those the user has just set stay, to be refused: `--set attention=none --set attention.size=64` is a mistake. So is
    `--set attention.size=64 --set attention=dot`, whose second half undoes the first.

    >>> overridden({"attention": {"score": "deep", "layers": 3}, "inputs": {"x": {}}}, ["attention.score=dot"])
    {'attention': {'score': 'dot'}, 'inputs': {'x': {}}}
    """
    changes: Raw = {}
    for path, value in map(_parsed, overrides):
        _check_kept(path, changes)
        changes[path] = value
    before, after = spelled_out(raw), spelled_out(raw)
    for path, value in changes.items():
        _put(after, path, value)
        after = spelled_out(after)
    _follow_the_output(after, before, changes)
    for path in _meaningless(after).keys() - _meaningless(before).keys():
        if not _given(path, changes):
            _drop(after, path)
    return after


def spelled_out(raw: Raw) -> Raw:
    """A copy without shorthand: `attention: none` is `attention: {score: none}`; an output is text by default."""
    raw = copy.deepcopy(raw)
    if isinstance(raw.get("attention"), str):
        raw["attention"] = {"score": raw["attention"]}
    if isinstance(raw.get("output"), dict):
        raw["output"] = {"kind": "text", **raw["output"]}
    return raw


def limits_of(*, epochs: int | None, updates: int | None, minutes: float | None) -> list[str]:
    """Overrides for the limits a caller gives: those replace the recipe's, all of them."""
    given = {"epochs": epochs, "updates": updates, "minutes": minutes}
    if all(value is None for value in given.values()):
        return []
    return [f"training.{name}={value if value is not None else 0}" for name, value in given.items()]


def _parsed(override: str) -> tuple[str, Any]:
    path, equals, value = override.partition("=")
    if not equals or not path.strip():
        raise UserError(f"--set {override}: not KEY=VALUE, for example decoder.size=256")
    try:
        return path.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise UserError(f"--set {override}: '{value}' is not a YAML value") from None


def _check_kept(path: str, changes: Iterable[str]) -> None:
    """Refuse a change of a whole group after changes of keys inside it: they would be accepted and do nothing."""
    for earlier in changes:
        if earlier.startswith(f"{path}."):
            raise UserError(
                f"--set {path}: undoes the --set {earlier} before it; give {earlier} after it, or leave it out"
            )


def _put(raw: Raw, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    here = raw
    for key in parents:
        inner = here.get(key)
        if not isinstance(inner, dict):
            inner = here[key] = {}
        here = inner
    here[last] = value


def _drop(raw: Raw, path: str) -> None:
    *parents, last = path.split(".")
    here = raw
    for key in parents:
        here = here.get(key, {})
    here.pop(last, None)


def _given(path: str, changes: Iterable[str]) -> bool:
    return any(
        changed == path or path.startswith(f"{changed}.") or changed.startswith(f"{path}.") for changed in changes
    )


def _follow_the_output(after: Raw, before: Raw, changes: Iterable[str]) -> None:
    """An output of another kind brings its own decoder, and has no use for the keys of the old kind."""
    output = after.get("output")
    kinds = {one.model_fields["kind"].default: one for one in settings_in(Recipe.model_fields["output"].annotation)}
    if not isinstance(output, dict) or output["kind"] == before.get("output", {"kind": "text"})["kind"]:
        return
    if output["kind"] not in kinds:
        return
    known = kinds[output["kind"]].model_fields
    for path in [*(f"output.{key}" for key in output if key not in known), "decoder.kind"]:
        if not _given(path, changes):
            _drop(after, path)


def _meaningless(raw: Raw) -> dict[str, str]:
    try:
        recipe = resolved(Recipe.model_validate(inherited(raw)))
        return inert(recipe) | unfit(recipe) | unconditioned(recipe)
    except (ValidationError, RecursionError, KeyError):
        return {}  # what is wrong is said when the whole is checked
