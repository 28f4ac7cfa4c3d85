"""Every key of a recipe with its type, default and meaning: `python -m seq2see.recipe.describe > docs/recipe.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_origin

from pydantic.fields import FieldInfo

from seq2see.recipe.load import MOST_BYTES, MOST_CHARACTERS, MOST_DEPTH, MOST_NODES
from seq2see.recipe.schema import Recipe
from seq2see.settings.base import (
    AUTO,
    LARGEST,
    MOST_LAYERS,
    Fitted,
    NameOf,
    Settings,
    bounds,
    first_line,
    is_settings,
    settings_in,
    type_text,
    without_none,
)

HEAD = f"""# Every key of a recipe

A recipe is a YAML file: the five answers (data, encoder, attention and decoder, loss, training) as keys. Whatever it
does not say has the default below. On the command line `--set key.path=value` changes one key. Unknown keys, values
that are not allowed and settings without effect are refused, all at once. NAME stands for the name of an input.

Some keys choose which others there are: `decoder.kind`, `attention.score`, `encoder.cell`. What a word of such a key
brings along stands under a heading of its own, such as *attention (score deep)*.

Limits: whole numbers go up to {LARGEST:,} where no smaller limit is given, and all networks of a recipe together have
at most {MOST_LAYERS:,} layers. The file is UTF-8 text of at most {MOST_BYTES:,} bytes, each key and value of at most
{MOST_CHARACTERS:,} characters, at most {MOST_DEPTH} levels deep. Anchors and aliases (`&name`, `*name`, `<<`) are
allowed while what they stand for is at most {MOST_NODES:,} keys and values; tags (`!!binary`) are not used.

Parts of your own (`--plugin`) bring their own keys: see CONTRIBUTING.md.

This page is written by `python -m seq2see.recipe.describe > docs/recipe.md`.
"""


@dataclass(frozen=True)
class Key:
    """One key: its full path, what may stand there, what holds where it is not given, and what it is for."""

    path: str
    kind: str
    default: str
    description: str


@dataclass(frozen=True)
class Group:
    """Keys that stand together, under the heading they share."""

    title: str
    description: str
    keys: tuple[Key, ...]


def keys() -> list[Key]:
    """Every key of a recipe, in the order of the schema."""
    return [key for group in groups() for key in group.keys]


def groups() -> list[Group]:
    return list(dict.fromkeys(_groups(Recipe, path="", title="recipe")))


def markdown() -> str:
    """The page of documentation."""
    parts = [HEAD]
    for group in groups():
        parts.append(
            f"\n## {group.title}\n{group.description}\n\n| key | allowed | default | meaning |\n|---|---|---|---|\n"
        )
        parts += [f"| `{key.path}` | {key.kind} | {key.default} | {_cell(key.description)} |\n" for key in group.keys]
    return "".join(parts)


def _groups(settings: type[Settings], *, path: str, title: str) -> Iterator[Group]:
    """The group of the settings themselves, then what their words bring along, then the settings inside them."""
    inner = {name: _inside(field) for name, field in settings.model_fields.items()}
    own = {name: field for name, field in settings.model_fields.items() if not inner[name] or field.description}
    kinds = _kinds(settings)
    if not kinds:
        yield Group(title, first_line(settings), tuple(_key(f"{path}{name}", field) for name, field in own.items()))
        yield from _brought(settings, path=path, title=title)
    for word, kind in kinds.items():
        yield from _groups(kind, path=path, title=f"{title} ({word})")
    for name, models in inner.items() if not kinds else ():
        below = f"{path}{name}"
        if get_origin(settings.model_fields[name].annotation) is dict:
            below += ".NAME"
        for model in models:
            word = f" ({model.model_fields['kind'].default})" if len(models) > 1 else ""
            yield from _groups(model, path=f"{below}.", title=f"{below}{word}")


def _kinds(settings: type[Settings]) -> Mapping[str, type[Settings]]:
    """The classes that stand in its place, by their word; none for one that is built as it is."""
    parts = vars(settings).get("parts", {}).values()
    return {
        word: kind
        for part in parts
        for word, kind in part.settings.items()
        if issubclass(kind, settings) and not getattr(kind, "own", False)
    }


def _brought(settings: type[Settings], *, path: str, title: str) -> Iterator[Group]:
    """The keys that the words of its keys bring along; words that bring the same ones stand together."""
    for chooser, part in getattr(settings, "parts", {}).items():
        words: dict[type[Settings], list[str]] = {}
        for word, kind in part.settings.items() if not part.chosen(settings) else ():
            if not issubclass(kind, settings) and not issubclass(settings, kind) and not getattr(kind, "own", False):
                words.setdefault(kind, []).append(word)
        for kind, names in words.items():
            own = {key: field for key, field in kind.model_fields.items() if key not in settings.model_fields}
            heading = f"{title.removesuffix(')')}{', ' if title.endswith(')') else ' ('}{chooser} {', '.join(names)})"
            if own:
                found = tuple(_key(f"{path}{key}", field) for key, field in own.items())
                yield Group(heading, first_line(kind), found)
            yield from _brought(kind, path=path, title=heading)


def _inside(field: FieldInfo) -> list[type[Settings]]:
    """Groups of keys below this one; not those of an optional group, which are described where they are at home."""
    annotation = field.annotation
    return [] if without_none(annotation) is not annotation else settings_in(annotation)


def _key(path: str, field: FieldInfo) -> Key:
    names = next((one for one in field.metadata if isinstance(one, NameOf)), None)
    annotation = field.annotation if names is None else Annotated[field.annotation, names]
    kind = type_text(annotation) + bounds(field.metadata)
    kind += f", or {AUTO}" if any(isinstance(mark, Fitted) for mark in field.metadata) else ""
    default = "has to be given" if field.is_required() else _default(field.get_default(call_default_factory=True))
    return Key(path, kind, default, field.description or "")


def _default(default: Any) -> str:
    if default is None or default in ([], {}, ""):
        return "not given"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if is_settings(type(default)):
        return "its defaults"
    return f"`{list(default) if isinstance(default, tuple) else default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(markdown())
