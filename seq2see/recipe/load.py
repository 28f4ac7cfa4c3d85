"""From a shipped name, a YAML file or a dict to a checked Recipe: every error at once, each with its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from yaml.constructor import ConstructorError

from seq2see import __version__
from seq2see.errors import UserError, nearest
from seq2see.files import SURROGATES, read_text, shortened
from seq2see.recipe.fitting import TableFacts, fitted_notes, is_open
from seq2see.recipe.messages import LISTED, RecipeError, schema_problems
from seq2see.recipe.overrides import Change, apply_overrides, expand_shorthand, is_set
from seq2see.recipe.overrides import left_out as settings_left_out
from seq2see.recipe.resolve import fill_implied, fit, parsed, without_foreign_keys
from seq2see.recipe.rules import problems
from seq2see.recipe.rules_attention import copying_notes
from seq2see.recipe.schema import Recipe
from seq2see.settings.base import MOST_LAYERS

KEPT = "recipe.yaml"
"""The recipe in a model's folder."""
FORMAT_KEY, FORMAT = "format", 2
"""The format of a model's folder, which its recipe.yaml begins with. Folders of seq2see 0.1.0 do not name theirs: it is
format 1, which differs in nothing else."""


LATER = ("fitted",)
"""Keys that recipes of earlier versions do not have."""


def shipped() -> dict[str, str]:
    """{name: description} of the recipes that come with the package."""
    texts = {name: file.read_text("utf-8") for name, file in _shipped_files().items()}
    return {name: str(parse_yaml(text, origin=name).get("description", "")) for name, text in texts.items()}


def _shipped_files() -> dict[str, Traversable]:
    files = sorted((resources.files("seq2see") / "recipes").iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".yaml"): file for file in files if file.name.endswith(".yaml")}


def load_recipe(
    source: str | Path | Mapping[str, Any] | Recipe,
    *,
    overrides: Iterable[str] = (),
    complete: bool = False,
    trusted: bool = False,
) -> Recipe:
    """The recipe of that name or file, with `key.path=value` overrides, checked and made complete.

    complete: it was written by a machine with nothing left out (a model's folder), so that what is missing was lost. A
    file cut short can still be YAML, and defaults in place of the lost settings would make another model.
    trusted: such a file as it was saved. It kept all rules before its model was trained, so only its types are checked;
    one of an earlier format is read as any other.

    >>> load_recipe({"inputs": {"source": {}}, "attention": "none"}).decoder.start
    ['source']
    """
    raw, origin = _read(source, complete=complete)
    number = _pop_format(raw, origin)
    if complete:
        _check_complete(raw, origin)
    if trusted and complete and number == FORMAT:
        with suppress(ValidationError):
            saved = Recipe.model_validate(raw)
            if sum(saved.layer_counts.values()) <= MOST_LAYERS:  # a limit of time and memory, which nobody may forge
                return saved
    overrides = list(overrides)
    changes = list(map(_change, overrides))
    if isinstance(known := raw.get("fitted"), dict):
        raw["fitted"] = {path: reason for path, reason in known.items() if not is_set(path, dict(changes))}
    raw = apply_overrides(raw, changes) if changes else expand_shorthand(raw)
    try:
        recipe, foreign = parsed(raw)
    except ValidationError as error:
        wrong = schema_problems(error, raw)
        wrong += without_foreign_keys(fill_implied(raw), wrong={problem.path for problem in wrong})[1]
        more = max(error.error_count() - len(wrong), 0) if len(wrong) == LISTED else 0
        raise RecipeError(origin, wrong, more=more) from None
    if broken := [*foreign, *problems(recipe)]:
        raise RecipeError(origin, broken)
    return recipe


def fit_recipe(recipe: Recipe, facts: TableFacts | Callable[[], TableFacts]) -> Recipe:
    """The recipe with what was `auto` fitted to a table. facts: or a function that finds them, called if needed."""
    if not any(map(is_open, recipe.fitted.values())):
        return recipe
    return load_recipe(fit(recipe, facts() if callable(facts) else facts))


def left_out(source: str | Path | Mapping[str, Any] | Recipe, overrides: Iterable[str]) -> list[str]:
    """A line for each setting of a recipe that is not used because the overrides make it meaningless."""
    raw, origin = _read(source, complete=False)
    _pop_format(raw, origin)
    return settings_left_out(raw, list(map(_change, overrides)))


def notes(recipe: Recipe) -> list[str]:
    """What was decided for the user, or does less than it seems to, and should be said."""
    fitted = fitted_notes(recipe.fitted)
    text = recipe.inputs and not recipe.output.one_step
    if text and recipe.attention.score == "none" and recipe.started_by and not recipe.fed_every_step:
        start = ", ".join(recipe.started_by)
        return [f"attention is off: the decoder starts from the summary of {start}", *fitted]
    return [*copying_notes(recipe), *fitted]


def _check_complete(raw: Mapping[str, Any], origin: str) -> None:
    missing = [key for key in Recipe.model_fields if key not in raw and key not in LATER]
    if missing:
        raise UserError(
            f"{origin}: cut short: without {', '.join(missing)}; the recipe in a model's folder has every key"
        )


def _read(source: str | Path | Mapping[str, Any] | Recipe, *, complete: bool) -> tuple[dict[str, Any], str]:
    """(raw recipe, what messages call it)"""
    if isinstance(source, Recipe):
        return source.to_dict(), "recipe"
    if not isinstance(source, str | Path):
        return dict(source), "recipe"
    path = Path(source)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        text, origin = read_text(path, most=MOST_BYTES, what="a recipe (a YAML text file)"), str(path)
    else:
        known = _shipped_files()
        if str(source) not in known:
            hint = nearest(str(source), known)
            inside = path / KEPT
            if inside.is_file():
                raise UserError(f"{path}: a model's folder, and a recipe is expected here; {inside} is one")
            raise UserError(f"unknown recipe '{source}'{hint}; allowed: a YAML file, or one of {', '.join(known)}")
        text, origin = known[str(source)].read_text("utf-8"), str(source)
    if complete and not text.endswith("\n"):
        raise UserError(f"{origin}: cut short: its last line has no end")
    raw = parse_yaml(text, origin=origin)
    if not isinstance(raw, dict):
        got = shortened(raw) if text.strip() else "an empty file"
        raise UserError(f"{origin}: a recipe is a mapping of keys (inputs, output, attention, ...), got {got}")
    return raw, origin


def _pop_format(raw: dict[str, Any], origin: str) -> int:
    """Take out and check the format version of the folder that a recipe comes from."""
    number = raw.pop(FORMAT_KEY, 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise UserError(f"{origin}: {FORMAT_KEY}: {shortened(number)}; allowed: a whole number from 1 to {FORMAT}")
    if number > FORMAT:
        raise UserError(
            f"{origin}: {FORMAT_KEY}: {number}: it was written by a newer version of seq2see; this one "
            f"({__version__}) reads formats up to {FORMAT}: upgrade seq2see"
        )
    return number


def to_yaml(recipe: Recipe) -> str:
    """The text of recipe.yaml in a model's folder: the format version, then every key of the recipe."""
    record = {FORMAT_KEY: FORMAT, **recipe.to_dict()}
    return yaml.safe_dump(record, sort_keys=False, allow_unicode=True)


# ---------------------------------------------------------------- overrides: key.path=value

MARKS = (",", ";", "|", "\t", "&", "!")
"""Texts that a shell hands over as they are, and that YAML would take for its own signs (`data.delimiter=|`)."""
BEGINNINGS = ("*", "%", "@", "`")
"""With which no YAML value of its own can begin: texts, such as the columns `*,label`."""
SHOWN = 100
"""Characters of an override that a message repeats."""


def limits_of(*, epochs: int | None, updates: int | None, minutes: float | None) -> list[str]:
    """Overrides for the limits a caller gives: those replace the recipe's, all of them."""
    given = {"epochs": epochs, "updates": updates, "minutes": minutes}
    if all(value is None for value in given.values()):
        return []
    return [f"training.{name}={value if value is not None else 0}" for name, value in given.items()]


def _change(override: str) -> Change:
    """(path, value) of a `key.path=value`."""
    path, equals, value = override.partition("=")
    path = path.strip()
    if not equals or not path:
        raise UserError(f"--set {_shown(override)}: not KEY=VALUE, for example decoder.size=256")
    if path.count(".") >= MOST_DEPTH:
        raise UserError(f"--set {_shown(path)}: a key of {path.count('.') + 1} parts, at most {MOST_DEPTH}")
    if value in MARKS:
        return path, value
    if value.strip().startswith(BEGINNINGS):
        return path, value.strip()
    try:
        return path, parse_yaml(value, origin="")
    except UserError as error:
        raise UserError(f"--set {_shown(override)}: '{_shown(value)}' is not a YAML value{error}") from None


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


# ---------------------------------------------------------------- YAML
# No tags, no repeated keys, and nothing that grows when it is read. Anchors and aliases (`&small`, `*small`,
# `<<: *small`) are allowed while what they expand to stays small: nested aliases double with every line, so that a few
# hundred bytes could stand for gigabytes.

MOST_BYTES = 1 << 18
"""Of a recipe's text. The longest recipes that ship have a few thousand; weights of 10,000 classes fit."""
MOST_NODES = 50_000
"""Keys and values together, aliases counted as what they stand for."""
MOST_DEPTH = 32
"""Levels of mappings and lists inside each other. The schema has six."""
MOST_CHARACTERS = 10_000
"""Of a single key or value."""
LARGEST = 1 << 63
"""Whole numbers lie between this and its negative."""

_PREFIX = "tag:yaml.org,2002:"
_TAGS = frozenset(_PREFIX + name for name in ("str", "int", "float", "bool", "null", "seq", "map", "merge"))
_WORDS = frozenset(_PREFIX + name for name in ("timestamp", "value"))
"""What YAML takes for a date, or for a sign of its own (`=`), and recipes take for text."""


def parse_yaml(text: str, *, origin: str) -> Any:
    """The value of a YAML text; UserError with origin, line and column where it cannot be read."""
    if len(text) > MOST_BYTES:
        raise UserError(f"{origin}: {len(text):,} characters, and a recipe has at most {MOST_BYTES:,}")
    try:
        return _Loader(text).get_single_data()
    except _Refused as error:
        raise UserError(f"{origin}{_place(error)}: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"{origin}, line {line}: not YAML: {str(error).partition(chr(10))[0]}") from None
    except yaml.MarkedYAMLError as error:
        problem = error.problem or "it cannot be read"
        context = f"{error.context}, " if error.context and problem.startswith("but ") else ""
        raise UserError(f"{origin}{_place(error)}: not YAML: {context}{problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:  # "\\UFFFFFFFF" is no character
        raise UserError(f"{origin}: not YAML: {error}") from None


class _Refused(ConstructorError):
    """YAML that recipes do not use."""


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the limits above, which hold while nodes are composed: before any value is made of them."""

    def __init__(self, text: str):
        super().__init__(text)
        self._nodes = 0
        self._depth = 0
        self._measured: dict[int, tuple[int, int]] = {}  # by id of a node: nodes in it, levels in it

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._measured:
                raise _refused(f"*{event.anchor} is used inside its own definition", event.start_mark)
            nodes, levels = self._measured[id(node)]
            self._count(nodes, levels, event.start_mark)
            return node
        before, self._depth = self._nodes, self._depth + 1
        self._count(1, 0, event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        _check_scalar(node)
        _check_keys(node)
        inside = [self._measured[id(one)][1] for one in _children(node)]
        self._measured[id(node)] = self._nodes - before, 1 + max(inside, default=0)
        return node

    def _count(self, nodes: int, levels: int, mark: Any) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            raise _refused(f"more than {MOST_NODES:,} keys and values, aliases (*name) counted as what they are", mark)
        if self._depth + levels > MOST_DEPTH:
            raise _refused(f"nested more than {MOST_DEPTH} levels deep", mark)

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)
        return _PREFIX + "str" if tag in _WORDS else tag

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if node.tag not in _TAGS:
            written = node.tag.replace(_PREFIX, "!!")
            raise _refused(f"the tag {shortened(written)} is not used in recipes", node.start_mark)
        try:
            value = super().construct_object(node, deep)
        except (ValueError, KeyError, IndexError, OverflowError):
            kind = node.tag.removeprefix(_PREFIX)
            raise _refused(f"{shortened(node.value)} is not a value of type {kind}", node.start_mark) from None
        if isinstance(value, int) and not -LARGEST <= value < LARGEST:
            raise _refused(f"{shortened(node.value)} is too large: whole numbers go up to 2**63", node.start_mark)
        return value


def _check_keys(node: Any) -> None:
    """Refuse duplicate keys, of which YAML would keep only one. Checked before merges (`<<`) bring in keys
    that a mapping's own replace."""
    seen = set()
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    for key in (key for key, _ in pairs if isinstance(key, yaml.ScalarNode)):
        if key.value in seen:
            raise _refused(f"key {shortened(key.value)} is given twice", key.start_mark)
        seen.add(key.value)


def _check_scalar(node: Any) -> None:
    if not isinstance(node, yaml.ScalarNode):
        return
    if len(node.value) > MOST_CHARACTERS:
        raise _refused(f"a value of {len(node.value):,} characters, at most {MOST_CHARACTERS:,}", node.start_mark)
    if SURROGATES.search(node.value):
        raise _refused(f"{shortened(node.value)} holds half of a surrogate pair, which is not text", node.start_mark)


def _children(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [one for pair in node.value for one in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _refused(problem: str, mark: Any) -> _Refused:
    return _Refused(None, None, problem, mark)
