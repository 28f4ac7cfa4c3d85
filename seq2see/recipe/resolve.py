"""From the keys of a recipe to a complete one: kinds that follow from others, keys of other kinds, silent defaults."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args, get_origin

from seq2see.decoders.base import writers_of
from seq2see.recipe.fitting import REFERENCE, TableFacts, fitted, is_open
from seq2see.recipe.schema import Recipe
from seq2see.registry import Problem
from seq2see.settings.base import AUTO, Fitted, Settings, is_settings, without_none
from seq2see.settings.columns import ENCODERS, INPUTS, OUTPUTS, EncoderSettings

Raw = dict[str, Any]
USUAL_KINDS = {"encoder": "recurrent", "embedding": "learned"}
"""The kind of a group of keys that does not state it."""
TEXTS = {"text", "texts"}
DEFAULT_KIND = "text"
"""The kind of an input or an output that does not state it."""


# --- Before types: what a raw recipe means


def parsed(raw: Raw) -> tuple[Recipe, list[Problem]]:
    """The complete recipe, and its keys that other kinds have; pydantic's ValidationError where a type is wrong."""
    raw, problems = without_foreign_keys(fill_implied(raw))
    paths = {problem.path for problem in problems}
    problems = [problem for problem in problems if not _inherited(problem.path, paths)]
    raw = replace_auto(raw)
    recipe = Recipe.model_validate(raw)
    if not recipe.with_places and "score" not in recipe.attention.model_fields_set:
        attention = raw.get("attention", {})
        raw, switched_off = without_foreign_keys(raw | {"attention": {**attention, "score": "none"}})
        recipe, problems = Recipe.model_validate(raw), problems + switched_off
    return fill_defaults(recipe), problems


def _inherited(path: str, paths: set[str]) -> bool:
    """Whether an input's encoder has that key from the recipe's, which is reported already."""
    return path.startswith("inputs.") and f"encoder.{path.partition('.encoder.')[2]}" in paths


def fill_implied(raw: Raw) -> Raw:
    """A copy in which an input's own `encoder` holds all its keys, those of the recipe's `encoder` included, and the
    decoder is of a kind that writes such an output.

    >>> fill_implied({"encoder": {"cell": "lstm"}, "inputs": {"x": {"encoder": {"size": 8}}}})["inputs"]["x"]["encoder"]
    {'cell': 'lstm', 'size': 8}
    """
    raw = copy.deepcopy(raw)
    common, inputs = raw.get("encoder"), raw.get("inputs")
    if isinstance(inputs, dict):
        for settings in inputs.values():
            _choose_encoder(settings, common, symbols=any(map(_reads_symbols, inputs.values())))
    if isinstance(common, dict) and isinstance(inputs, dict):
        for settings in inputs.values():
            if isinstance(settings, dict) and isinstance(settings.get("encoder"), dict):
                settings["encoder"] = _merge(common, settings["encoder"])
    output, decoder = raw.get("output", {}), raw.get("decoder", {})
    kind = OUTPUTS.get(kind_word(output, DEFAULT_KIND)) if isinstance(output, dict) else None
    if kind is not None and isinstance(decoder, dict) and "kind" not in decoder and (writers := writers_of(kind)):
        raw["decoder"] = {"kind": writers[0], **decoder}
    return raw


def kind_word(settings: Raw, default: str = "") -> str:
    """The `kind` of a group of keys, or the default; empty where it is not a string."""
    kind = settings.get("kind", default)
    return kind if isinstance(kind, str) else ""


def usual_encoder(settings: Raw) -> str | None:
    """The kind of encoder that usually reads such an input, where that is not the recipe's own."""
    kind = INPUTS.get(kind_word(settings, DEFAULT_KIND))
    return None if kind is None else kind.usual_encoder


def _reads_symbols(settings: Any) -> bool:
    """Whether an input has symbols, and the recipe's own encoder to read them."""
    if not isinstance(settings, dict) or usual_encoder(settings) is not None:
        return False
    own = settings.get("encoder")
    return not isinstance(own, dict) or "kind" not in own


def _choose_encoder(settings: Any, common: Any, *, symbols: bool) -> None:
    """An input that texts' encoders cannot read gets its usual kind of encoder, where the recipe's own is for texts.

    symbols: the recipe's encoder has texts to read; otherwise one that reads both is left to this input.
    """
    usual = usual_encoder(settings) if isinstance(settings, dict) else None
    own = settings.get("encoder") if usual else None
    if usual is None or not isinstance(own, dict | None) or "kind" in (own or {}):
        return
    default = USUAL_KINDS["encoder"]
    kind = ENCODERS.get(kind_word(common, default) if isinstance(common, dict) else default)
    if kind is None or not kind.for_texts:
        return
    if symbols or TEXTS.issuperset(kind.reads) or INPUTS[kind_word(settings)].one_place:
        settings["encoder"] = {"kind": usual, **(own or {})}


def _merge(common: Raw, own: Raw, *, key: str = "encoder") -> Raw:
    """Settings of the same kind are filled in, groups of keys inside them too; those of another kind stand alone."""
    kind = common.get("kind", USUAL_KINDS.get(key))
    if own.get("kind", kind) != kind:
        return own
    inner = {
        name: _merge(common[name], value, key=name)
        for name, value in own.items()
        if isinstance(common.get(name), dict) and isinstance(value, dict)
    }
    return {**common, **own, **inner}


# --- Keys of other kinds


def class_of(annotation: Any, values: Mapping[str, Any]) -> type[Settings] | None:
    """The class of settings that these values choose; None where none is meant, or its kind is not known."""
    annotation = without_none(annotation)
    if is_settings(annotation):
        chosen: type[Settings] = annotation.choose(values)[0]
        return chosen
    return None


def groups(raw: Raw, annotation: Any = Recipe, path: str = "") -> Iterator[tuple[str, type[Settings], Raw]]:
    """(path, class, values) of every group of keys in a raw recipe whose class is known; older spellings are mended."""
    if get_origin(annotation) is dict:
        for name, value in raw.items():
            if isinstance(value, dict):
                yield from groups(value, get_args(annotation)[1], f"{path}.{name}")
        return
    chosen = class_of(annotation, raw)
    if chosen is None:
        return
    spelled = chosen.choose(raw)[1]
    if spelled != raw:
        raw.clear()
        raw.update(spelled)
    yield path, chosen, raw
    for key, value in list(raw.items()):
        if isinstance(value, dict) and key in chosen.model_fields:
            inside = without_none(chosen.model_fields[key].annotation)
            yield from groups(value, inside, f"{path}.{key}" if path else str(key))


def without_foreign_keys(raw: Raw, *, wrong: Collection[str] = ()) -> tuple[Raw, list[Problem]]:
    """A copy without keys of other kinds, and a problem for each that does not have its default.

    Recipes that were saved before each kind had keys of its own have all of them, at their defaults. wrong: paths of
    keys with a problem of their own: where one of them was to name the kind, nothing is said of the keys of others.
    """
    raw, problems = copy.deepcopy(raw), []
    for path, settings, values in groups(raw):
        for key, foreign in settings.foreign().items():
            if key not in values:
                continue
            differing = foreign.differing(f"{path}.{key}", values.pop(key))
            if not any(f"{path}.{chooser}" in wrong for chooser in foreign.words):
                reason = foreign.reason(path)
                problems += [Problem(other, reason, "other-kind", no_effect=True) for other in differing]
    return raw, problems


# --- Settings that are fitted to the table


def replace_auto(raw: Raw) -> Raw:
    """A copy in which `auto` is a number, that of a table of 10,000 rows, wherever it is allowed. `fitted` has their
    paths, each with its number until a table is known, without those whose value was changed since.

    >>> replace_auto({"encoder": {"size": "auto"}})
    {'encoder': {'size': 176}, 'fitted': {'encoder.size': '176'}}
    """
    raw = copy.deepcopy(raw)
    known = raw.get("fitted", {})
    if not isinstance(known, dict) or not all(isinstance(reason, str) for reason in known.values()):
        return raw  # of a wrong type, which is said with all others
    paths: dict[str, str] = {}
    for where, mark, values, key in _fitted_settings(raw):
        if values[key] == AUTO:
            values[key] = fitted(mark.rule, REFERENCE, where, values)
            paths[where] = str(values[key])
        elif where in known and known[where].partition(": ")[0] == str(values[key]):
            paths[where] = known[where]
    return raw | {"fitted": paths} if known or paths else raw


def _fitted_settings(raw: Raw) -> Iterator[tuple[str, Fitted, Raw, str]]:
    """(path, mark, group of keys, key) of each setting that may be `auto`."""
    for path, settings, values in groups(raw):
        for key in list(values):
            field = settings.model_fields.get(key)
            marks = [mark for mark in field.metadata if isinstance(mark, Fitted)] if field is not None else []
            if marks:
                yield f"{path}.{key}" if path else key, marks[0], values, key


def fit(recipe: Recipe, facts: TableFacts) -> Raw:
    """The keys of a recipe in which what was `auto` fits a table, with the reasons. What no longer has a meaning (the
    size of an attention that is switched off) is passed over."""
    raw = recipe.to_dict()
    reasons = {path: reason for path, reason in recipe.fitted.items() if not is_open(reason)}
    for where, mark, values, key in _fitted_settings(raw):
        if is_open(recipe.fitted.get(where, ": ")):
            values[key] = fitted(mark.rule, facts, where, values)
            reasons[where] = f"{values[key]}: {facts.text}"
    return raw | {"fitted": reasons}


# --- With types: what a recipe that is silent means


def fill_defaults(recipe: Recipe) -> Recipe:
    """The recipe made complete where it is silent. A contradiction that was asked for stays, to be refused.

    All inputs with places are looked at. Without attention, `start` gives the decoder every input that nothing else
    gives it, unless it is none. Output, encoders and decoder complete their own settings.

    >>> fill_defaults(Recipe(inputs={"x": {}})).attention.over
    ['x']
    """
    recipe = recipe.model_copy(update={"output": _updated(recipe.output, recipe.output.complete(recipe))})
    attention, decoder = recipe.attention, recipe.decoder
    if attention.score != "none" and attention.over is None:
        attention = attention.model_copy(update={"over": recipe.looked_at})
    unused = [name for name in recipe.inputs if name not in recipe.used]
    if attention.score == "none" and unused and decoder.start != "none":
        decoder = decoder.model_copy(update={"start": [*recipe.started_by, *unused]})
    if recipe.data.stream:
        decoder = _updated(decoder, decoder.complete(stream=True))
    return _with_encoders(recipe.model_copy(update={"attention": attention, "decoder": decoder}))


def _with_encoders(recipe: Recipe) -> Recipe:
    """Encoders complete their settings by what they read. Inputs that share an encoder and would have other settings
    each get a copy of their own."""
    summaries = {*recipe.started_by, *recipe.fed_every_step}
    for path, names in recipe.read_by.items():
        settings: EncoderSettings = recipe.encoder_of(names[0])
        columns, used = {name: recipe.inputs[name] for name in names}, bool(summaries.intersection(names))
        values = [settings.complete(column, summary_used=used, shared=False) for column in columns.values()]
        if all(value == values[0] for value in values):
            recipe = recipe.with_encoder(path, _updated(settings, values[0])) if values[0] else recipe
            continue
        for name, column in columns.items():
            if own := settings.complete(column, summary_used=used, shared=True):
                recipe = recipe.with_encoder(f"inputs.{name}.encoder", _updated(settings, own))
    return recipe


def _updated(settings: Any, values: Mapping[str, Any]) -> Any:
    return settings.model_copy(update=values) if values else settings
