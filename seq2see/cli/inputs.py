"""Models and inputs of commands: arguments, tables and standard input, in chunks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from seq2see.cli.parser import say
from seq2see.errors import UserError, counted

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.data.tables import Table


CHUNK = 1024
"""Inputs that are predicted together: enough to sort by length, few enough for tables of any size."""

MAX_CHARACTERS = 1 << 25
"""Characters of the inputs that are predicted together; a single input may be longer."""

T = TypeVar("T")


@dataclass
class Item:
    """One input by the recipe's names, and its row in the table (empty for arguments and lines)."""

    inputs: Mapping[str, str]
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class InputSource:
    """Inputs with the columns of their table (empty for arguments and lines).

    files: {name of an input whose values are paths: its column}; table: that they come from.
    """

    items: Iterable[Item]
    columns: list[str] = field(default_factory=list)
    count: int | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    table: Table | None = None


def read_inputs(
    model: Model,
    inputs: Sequence[str] | None,
    file: Path | None,
    columns: Sequence[str] | None = None,
    *,
    tell: Callable[[str], None] = say,
) -> InputSource:
    """The inputs of a command: from arguments, a table or standard input. tell: gets messages about the table."""
    if inputs and file is not None:
        raise UserError("give either INPUT or --file, not both")
    if columns is not None and file is None:
        raise UserError("--columns needs --file")
    if not model.recipe.inputs:
        if inputs or file is not None:
            raise UserError("this model is a language model and takes no INPUT; use --prefix to give it a beginning")
        return InputSource([Item({})], count=1)
    if inputs:
        rows = _joined(inputs, len(model.recipe.inputs))
        return InputSource([Item(parse_input(model, text)) for text in rows], count=len(rows))
    if file is not None:
        return _table(model, file, columns, tell)
    return InputSource(_lines(model))


def _joined(texts: Sequence[str], inputs: int) -> Sequence[str]:
    """Arguments as rows: those of a model with several inputs may also come one after the other, without tabs.

    >>> _joined(["a man sleeps", "a man is awake"], 2), _joined(["a\\tb", "c\\td"], 2), _joined(["a", "b"], 1)
    (['a man sleeps\\ta man is awake'], ['a\\tb', 'c\\td'], ['a', 'b'])
    """
    if inputs == 1 or any("\t" in text for text in texts):
        return texts
    if len(texts) > 1 and len(texts) % inputs:
        raise UserError(
            f"INPUT: {len(texts)} arguments; the model reads {inputs} inputs, so a multiple of {inputs} is expected"
        )
    return ["\t".join(texts[first : first + inputs]) for first in range(0, len(texts), inputs)]


def parse_input(model: Model, text: str) -> dict[str, str]:
    """One INPUT argument: the only input, or several separated by tabs."""
    names = list(model.recipe.inputs)
    if not text.strip():
        raise UserError("INPUT is empty")
    parts = [text] if len(names) == 1 else text.split("\t")
    if len(parts) != len(names):
        raise UserError(
            f"INPUT '{text}': the model reads {counted(len(names), 'input')} ({', '.join(names)}), got {len(parts)}; "
            "separate them with a tab ($'first\\tsecond' in bash), or use --file"
        )
    for name, part in zip(names, parts, strict=True):
        if not part.strip() and name in model.recipe.needed:
            raise UserError(f"INPUT '{text}': input '{name}' is empty")
    try:
        return model.row([_value(model, name, part) for name, part in zip(names, parts, strict=True)])
    except UserError as error:
        raise UserError(f"INPUT: {error}") from None


def _value(model: Model, name: str, text: str) -> Any:
    """A list if the input may be one and is written as JSON, otherwise the text."""
    elements = model.bundle.fields.inputs[name].elements
    if elements is None or str not in elements.types or not text.lstrip().startswith("["):
        return text
    try:
        items = json.loads(text)
    except ValueError:
        return text
    return items if isinstance(items, list) else text


def chunked(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Lists of at most `size` items, in order; fewer if they are long."""
    chunk: list[T] = []
    characters = 0
    for item in items:
        chunk.append(item)
        characters += sum(map(len, item.inputs.values())) if isinstance(item, Item) else 0
        if len(chunk) == size or characters >= MAX_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _lines(model: Model) -> Iterator[Item]:
    if sys.stdin is None or sys.stdin.isatty():
        raise UserError("no input: give INPUT, --file or lines on standard input")
    number = 0
    names = list(model.recipe.inputs)
    try:
        for number, line in enumerate(sys.stdin, start=1):
            line = line.removeprefix("\ufeff") if number == 1 else line
            parts = [line.rstrip("\r\n")] if len(names) == 1 else line.rstrip("\r\n").split("\t")
            if len(parts) != len(names):
                raise UserError(
                    f"standard input, line {number}: expected {len(names)} inputs separated by tabs "
                    f"({', '.join(names)}), got {len(parts)}"
                )
            yield Item(model.row([_value(model, name, part) for name, part in zip(names, parts, strict=True)]))
    except UnicodeDecodeError as error:
        raise UserError(f"standard input, after line {number}: not UTF-8 text ({error.reason})") from None
    if not number:
        raise UserError("no input: standard input is empty; give INPUT, --file or lines on standard input")


def _table(model: Model, file: Path, columns: Sequence[str] | None, tell: Callable[[str], None]) -> InputSource:
    from seq2see.data.columns import OUTPUT
    from seq2see.training.dataset import open_table

    table, resolution = open_table(model.recipe, file, columns, optional=[OUTPUT], fields=model.bundle.fields)
    raw, _ = open_table(model.recipe, file, columns, optional=[OUTPUT])
    if resolution.note:
        tell(resolution.note)
    names = list(model.recipe.inputs)

    def items() -> Iterator[Item]:
        rows = iter(raw)
        for values in resolution.rows(table):
            row = next(row for row in rows if row.line == values.line)
            yield Item({name: values[name] for name in names}, row.values)
        for note in table.notes:
            tell(note)

    files = {name: resolution.mapping[name] for name in resolution.files if name in names}
    return InputSource(items(), table.columns, files=files, table=table)


def load_single_model(path: str, command: str, *, on_error: str | None = None) -> Model:
    """Load a model, for commands that do not accept ensembles."""
    if "+" in path and not Path(path).exists():
        raise UserError(f"{path}: {command} takes a single model, not an ensemble")
    return load_model(path, on_error)


def load_model(path: str, on_error: str | None, *, device: str = "cpu") -> Model:
    """Load a model onto a device; on_error: replaces the recipe's setting for bad rows."""
    from seq2see.api import load
    from seq2see.pipeline.bundle import find_device

    find_device(device, key="--device")
    return load(path, device=device, on_error=on_error)
