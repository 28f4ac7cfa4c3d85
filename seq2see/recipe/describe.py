"""Every key of a recipe with its type, default and meaning: `python -m seq2see.recipe.describe > docs/recipe.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from seq2see.recipe.bounded_yaml import MOST_BYTES, MOST_CHARACTERS, MOST_DEPTH, MOST_NODES
from seq2see.recipe.schema import Recipe
from seq2see.settings.attention import SCORES
from seq2see.settings.base import (
    LARGEST,
    MOST_LAYERS,
    bounds,
    first_line,
    given_in,
    is_open,
    is_settings,
    kind_of,
    settings_in,
)
from seq2see.settings.decoders import WRITERS
from seq2see.settings.plugins import BROUGHT, PLUGIN

HEAD = f"""# Every key of a recipe

A recipe is a YAML file: the five answers (data, encoder, attention and decoder, loss, training) as keys. Whatever it
does not say has the default below. On the command line `--set key.path=value` changes one key. Unknown keys, values
that are not allowed and settings without effect are refused, all at once. NAME stands for the name of an input.

Limits: whole numbers go up to {LARGEST:,} where no smaller limit is given, and all networks of a recipe together have
at most {MOST_LAYERS:,} layers. The file is UTF-8 text of at most {MOST_BYTES:,} bytes, each key and value of at most
{MOST_CHARACTERS:,} characters, at most {MOST_DEPTH} levels deep. Anchors and aliases (`&name`, `*name`, `<<`) are
allowed while what they stand for is at most {MOST_NODES:,} keys and values; tags (`!!binary`) are not used.

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
    return list(_groups(Recipe, path="", title="recipe"))


def markdown() -> str:
    """The page of documentation."""
    parts = [HEAD]
    for group in groups():
        parts.append(
            f"\n## {group.title}\n{group.description}\n\n| key | allowed | default | meaning |\n|---|---|---|---|\n"
        )
        parts += [f"| `{key.path}` | {key.kind} | {key.default} | {_cell(key.description)} |\n" for key in group.keys]
    return "".join(parts)


def _groups(settings: type[BaseModel], *, path: str, title: str) -> Iterator[Group]:
    """The group of the settings themselves, then those of the settings inside them."""
    inner = {name: _inside(field) for name, field in settings.model_fields.items()}
    own = [
        _key(f"{path}{name}", field)
        for name, field in settings.model_fields.items()
        if not inner[name] or field.description
    ]
    yield Group(title, first_line(settings), tuple(own))
    for name, models in inner.items():
        below = f"{path}{name}"
        if get_origin(settings.model_fields[name].annotation) is dict:
            below += ".NAME"
        for model in models:
            kind = f" ({PLUGIN if is_open(model) else model.model_fields['kind'].default})" if len(models) > 1 else ""
            yield from _groups(model, path=f"{below}.", title=f"{below}{kind}")


def _inside(field: FieldInfo) -> list[type[BaseModel]]:
    """Groups of keys below this one; not those of an optional group, which are described where they are at home."""
    annotation = field.annotation
    return [] if given_in(annotation) is not annotation else settings_in(annotation)


def _key(path: str, field: FieldInfo) -> Key:
    words = {"attention.score": [*SCORES, "none"], "decoder.kind": WRITERS}.get(path)
    kind = f"{', '.join(words)}, {BROUGHT}" if words else kind_of(field.annotation) + bounds(field.metadata)
    default = "has to be given" if field.is_required() else _said(field.get_default(call_default_factory=True))
    return Key(path, kind, default, field.description or "")


def _said(default: Any) -> str:
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
