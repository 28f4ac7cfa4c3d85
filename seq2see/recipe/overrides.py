"""`key.path=value` overrides: one setting changes, and settings that lose their meaning with it are dropped."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import ValidationError

from seq2see.decoders import decoders
from seq2see.errors import UserError
from seq2see.recipe.resolve import DEFAULT_KIND, USUAL_KINDS, Raw, class_of, kind_word, parsed
from seq2see.recipe.rules import droppable
from seq2see.recipe.schema import Recipe
from seq2see.settings.columns import ENCODERS, EncoderSettings

Change = tuple[str, Any]
"""(path, value): one setting of a recipe, and what it becomes."""


def apply_overrides(raw: Raw, overrides: Iterable[Change]) -> Raw:
    """A copy of the raw recipe with the overrides, without the settings that they make meaningless.

    Settings that an override itself sets stay, to be refused: `--set attention=none --set attention.size=64` is a
    mistake. So is `--set attention.size=64 --set attention=dot`, whose second half undoes the first.

    >>> raw = {"attention": {"score": "deep", "layers": 3}, "inputs": {"x": {}}}
    >>> apply_overrides(raw, [("attention.score", "dot")])
    {'attention': {'score': 'dot'}, 'inputs': {'x': {}}}
    """
    return _applied(raw, overrides)[0]


def left_out(raw: Raw, overrides: Sequence[Change]) -> list[str]:
    """A line for each setting of the raw recipe that is dropped because the overrides make it meaningless.

    Settings of a part that was replaced (of a score, of a kind of encoder) are not listed.

    >>> raw = {"inputs": {"x": {}}, "attention": {"size": 8}, "decoder": {"copy_from": "x"}}
    >>> left_out(raw, [("attention", "none")])
    ['decoder.copy_from x is left out: without attention no place is looked at']
    """
    replaced = [path.removesuffix(".score").removesuffix(".kind") for path, _ in overrides]
    return [
        f"{path} {value} is left out: {reason}"
        for path, (value, reason) in _applied(raw, overrides)[1].items()
        if not any(path.startswith(f"{group}.") for group in replaced)
    ]


def _applied(raw: Raw, overrides: Iterable[Change]) -> tuple[Raw, dict[str, tuple[Any, str]]]:
    """(the recipe with the overrides, {path: (value, reason)} of the settings they make meaningless)."""
    changes: Raw = {}
    for path, value in overrides:
        _check_kept(path, changes)
        changes[path] = value
    before, after = expand_shorthand(raw), expand_shorthand(raw)
    for path, value in changes.items():
        _put(after, path, value)
        after = expand_shorthand(after)
    _drop_other_kinds(after, before, changes)
    _drop_stream_defaults(after, before, changes)
    known, dropped = _meaningless(before), dict[str, tuple[Any, str]]()
    while True:  # what is dropped may make others meaningless in their turn
        useless = {path: why for path, why in _meaningless(after).items() if path not in known and path not in dropped}
        useless = {path: why for path, why in useless.items() if not is_set(path, changes)}
        if not useless:
            return after, dropped
        for path, reason in useless.items():
            group, _, key = path.rpartition(".")
            dropped[path] = (_at(after, group).get(key), reason)
            _drop(after, path)


def expand_shorthand(raw: Raw) -> Raw:
    """A copy without shorthand: `attention: none` is `attention: {score: none}`; an output is text by default."""
    raw = copy.deepcopy(raw)
    if isinstance(raw.get("attention"), str):
        raw["attention"] = {"score": raw["attention"]}
    if isinstance(raw.get("output"), dict):
        raw["output"] = {"kind": "text", **raw["output"]}
    return raw


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
    here: Any = raw
    for key in parents:
        here = here.get(key, {}) if isinstance(here, dict) else {}
    if isinstance(here, dict):  # what is no mapping is refused when all of it is checked
        here.pop(last, None)


def is_set(path: str, changes: Iterable[str]) -> bool:
    return any(
        changed == path or path.startswith(f"{changed}.") or changed.startswith(f"{path}.") for changed in changes
    )


def _drop_other_kinds(after: Raw, before: Raw, changes: Iterable[str]) -> None:
    """Drop keys of the old kind where a group is of another kind now; another output has another kind of decoder."""
    for path, annotation, default in _groups_with_kinds(after):
        new, old = _at(after, path), _at(before, path)
        kind, was = kind_word(new, default), kind_word(old, default)
        settings = class_of(annotation, {**new, "kind": kind})
        if kind == was or settings is None or (kind not in ENCODERS and issubclass(settings, EncoderSettings)):
            continue
        if path == "output" and not is_set("decoder.kind", changes):
            _drop(after, "decoder.kind")
        lost = [key for key, value in new.items() if key not in settings.known_keys() or value is None]
        for key in [key for key in lost if not is_set(f"{path}.{key}", changes)]:
            _drop(after, f"{path}.{key}")


def _drop_stream_defaults(after: Raw, before: Raw, changes: Iterable[str]) -> None:
    """Drop defaults of streams that a complete recipe has written down, so that they follow from the new recipe."""
    before_defaults, after_defaults = (
        decoder.stream_defaults(stream=bool(_at(raw, "data").get("stream")))
        if (decoder := decoders.settings.get(kind_word(_at(raw, "decoder")))) is not None
        else {}
        for raw in (before, after)
    )
    written = _at(before, "decoder")
    for key in before_defaults if before_defaults != after_defaults else ():
        if written.get(key) == before_defaults[key] and not is_set(f"decoder.{key}", changes):
            _drop(after, f"decoder.{key}")


def _groups_with_kinds(raw: Raw) -> Iterator[tuple[str, Any, str]]:
    """Path, type and default kind of each group of keys that comes in several kinds."""
    fields = Recipe.model_fields
    one_input = get_args(fields["inputs"].annotation)[1]
    yield "output", fields["output"].annotation, DEFAULT_KIND
    yield "encoder", EncoderSettings, USUAL_KINDS["encoder"]
    inputs = raw.get("inputs")
    for name, settings in inputs.items() if isinstance(inputs, dict) else ():
        if isinstance(settings, dict):
            yield f"inputs.{name}", one_input, DEFAULT_KIND
            if isinstance(settings.get("encoder"), dict):
                common = kind_word(_at(raw, "encoder"), USUAL_KINDS["encoder"])
                yield f"inputs.{name}.encoder", EncoderSettings, common


def _at(raw: Raw, path: str) -> Raw:
    here: Any = raw
    for key in path.split("."):
        here = here.get(key) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else {}


def _meaningless(raw: Raw) -> dict[str, str]:
    try:
        recipe, foreign = parsed(raw)
        return {problem.path: problem.message for problem in foreign} | droppable(recipe)
    except (ValidationError, RecursionError, KeyError):
        return {}  # what is wrong is said when the whole is checked
