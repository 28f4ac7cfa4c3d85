"""Models and inputs for commands: arguments, a table, standard input, a chunk at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from seq2see.cli.terminal import say
from seq2see.errors import UserError, counted

if TYPE_CHECKING:
    from seq2see.api import Model


# ---------------- Inputs from wherever they come (arguments, a table, standard input), a chunk at a time

CHUNK = 1024
"""Inputs predicted together: enough to sort by length, few enough for tables of any size."""

MOST_CHARACTERS = 1 << 25
"""Of the inputs predicted together; a single one may be longer."""

T = TypeVar("T")


@dataclass
class Item:
    """One input by the recipe's names, and the row of the table it stands in (none for arguments and lines)."""

    inputs: Mapping[str, str]
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Source:
    """Where inputs come from: `columns` of the table they stand in, none for arguments and lines; files: {input whose
    values are paths: its column}."""

    items: Iterable[Item]
    columns: list[str] = field(default_factory=list)
    count: int | None = None
    files: Mapping[str, str] = field(default_factory=dict)


def source(
    model: Model, inputs: Sequence[str] | None, file: Path | None, columns: Sequence[str] | None = None
) -> Source:
    """The inputs a command was given, in one of three ways."""
    if inputs and file is not None:
        raise UserError("INPUT and --file: give one of them")
    if columns is not None and file is None:
        raise UserError("--columns: no meaning without --file")
    if not model.recipe.inputs:
        if inputs or file is not None:
            raise UserError("this model is a language model and reads no INPUT; --prefix gives it a beginning")
        return Source([Item({})], count=1)
    if inputs:
        return Source([Item(argument(model, text)) for text in inputs], count=len(inputs))
    if file is not None:
        return _table(model, file, columns)
    return Source(_lines(model))


def argument(model: Model, text: str) -> dict[str, str]:
    """One INPUT: the text of the only input, or the texts of several with tabs between them."""
    names = list(model.recipe.inputs)
    if not text.strip():
        raise UserError("INPUT is empty")
    parts = [text] if len(names) == 1 else text.split("\t")
    if len(parts) != len(names):
        raise UserError(
            f"INPUT '{text}': the model reads {counted(len(names), 'input')} ({', '.join(names)}), got {len(parts)}; "
            "put a tab between them ($'first\\tsecond' in bash), or use --file with a table"
        )
    for name, part in zip(names, parts, strict=True):
        if not part.strip() and name in model.recipe.needed:
            raise UserError(f"INPUT '{text}': input '{name}' is empty")
    try:
        return model.row([_value(model, name, part) for name, part in zip(names, parts, strict=True)])
    except UserError as error:
        raise UserError(f"INPUT: {error}") from None


def _value(model: Model, name: str, text: str) -> Any:
    """A list where the input may be one and it is written as JSON, as in a table of JSON lines; a text otherwise."""
    elements = model.bundle.fields.inputs[name].elements
    if elements is None or str not in elements.types or not text.lstrip().startswith("["):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, list) else text


def chunked(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Lists of at most so many items, in order; fewer where they are long."""
    chunk: list[T] = []
    characters = 0
    for item in items:
        chunk.append(item)
        characters += sum(map(len, item.inputs.values())) if isinstance(item, Item) else 0
        if len(chunk) == size or characters >= MOST_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _lines(model: Model) -> Iterator[Item]:
    if sys.stdin is None or sys.stdin.isatty():
        raise UserError("no input: give INPUT, --file, or lines on standard input")
    number = 0
    names = list(model.recipe.inputs)
    try:
        for number, line in enumerate(sys.stdin, start=1):
            parts = [line.rstrip("\r\n")] if len(names) == 1 else line.rstrip("\r\n").split("\t")
            if len(parts) != len(names):
                raise UserError(
                    f"standard input, line {number}: {len(names)} inputs ({', '.join(names)}) separated by tabs "
                    f"expected, got {len(parts)}"
                )
            yield Item(model.row([_value(model, name, part) for name, part in zip(names, parts, strict=True)]))
    except UnicodeDecodeError as error:
        raise UserError(f"standard input, after line {number}: not UTF-8 text ({error.reason})") from None
    if not number:
        raise UserError("no input: standard input is empty; give INPUT, --file, or lines on standard input")


def _table(model: Model, file: Path, columns: Sequence[str] | None) -> Source:
    from seq2see.data.columns import OUTPUT
    from seq2see.training.dataset import open_table

    table, resolution = open_table(model.recipe, file, columns, optional=[OUTPUT], fields=model.bundle.fields)
    raw, _ = open_table(model.recipe, file, columns, optional=[OUTPUT])
    if resolution.note:
        say(resolution.note)
    names = list(model.recipe.inputs)

    def items() -> Iterator[Item]:
        rows = iter(raw)
        for values in resolution.rows(table):
            row = next(row for row in rows if row.line == values.line)
            yield Item({name: values[name] for name in names}, row.values)
        for note in table.notes:
            say(note)

    files = {name: resolution.mapping[name] for name in resolution.files if name in names}
    return Source(items(), table.columns, files=files)


# ---------------- Models for commands


def one_model(given: str, command: str, *, on_error: str | None = None) -> Model:
    """A single model, for what has no meaning for an ensemble."""
    if "+" in given and not Path(given).is_dir():
        raise UserError(f"{given}: {command} takes one model, not several joined by +")
    return reading(given, on_error)


def reading(given: str, on_error: str | None) -> Model:
    """A model that reads tables as `--on-error` says; None: as its recipe says."""
    from seq2see.api import load

    model = load(given)
    if on_error is not None:
        for bundle in model.bundles:
            data = bundle.recipe.data.model_copy(update={"on_error": on_error})
            bundle.recipe = bundle.recipe.model_copy(update={"data": data})
    return model
