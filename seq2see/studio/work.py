"""What a request costs, told before anybody begins with it: the symbols it has read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seq2see.data.columns import OUTPUT
from seq2see.data.fields import Fields
from seq2see.data.text import TextField
from seq2see.errors import UserError, counted
from seq2see.search import SearchOptions
from seq2see.studio.asked import Invalid
from seq2see.studio.settings import Limits

LOOKS = 100
"""So many places are looked at in about the time that one symbol takes to be read or written."""

Given = str | Sequence[str]


def rooms(fields: Fields, rows: Sequence[Mapping[str, str]], limits: Limits) -> list[int]:
    """How many symbols the model reads of each row, all inputs together; a UserError where one text has too many.

    Characters are counted where a text comes in; how many symbols they make depends on the model, and symbols are what
    takes time.
    """
    return [sum(_room(name, fields, row, limits) for name in fields.inputs) for row in rows]


def _room(name: str, fields: Fields, row: Mapping[str, str], limits: Limits) -> int:
    field = fields.inputs[name]
    size = field.room(row[name])
    if isinstance(field, TextField) and size > limits.symbols:
        most = counted(limits.symbols, "symbol")
        raise UserError(f"input '{name}': {size:,} symbols; allowed: at most {most} (serve --max-symbols)")
    return size


def hypotheses(options: SearchOptions) -> int:
    """How many outputs grow side by side for each input."""
    return max(options.beam, options.n_best)


def check_work(symbols: Sequence[int], limits: Limits, *, width: int, steps: int, models: int = 1) -> None:
    """Refuse what would keep a model from everybody else for long; symbols: of each row, width: outputs that grow for
    it side by side, steps: symbols of the longest, each of which looks at all that was read."""
    work = models * sum(size + width * steps * (LOOKS + size) // LOOKS for size in symbols)
    if work <= limits.work:
        return
    asked = [counted(len(symbols), "input"), f"{counted(sum(symbols), 'symbol')} in all"]
    asked.append(f"{counted(width, 'output')} of up to {counted(steps, 'symbol')} for each")
    if models > 1:
        asked.append(f"{models} models")
    raise UserError(
        f"too much for one request: {', '.join(asked)} is the work of {work:,} symbols; allowed: at most "
        f"{limits.work:,} (serve --max-work); ask for fewer or shorter inputs, a narrower beam, or a smaller max_length"
    )


def check_given(what: str, given: Given | None, limits: Limits) -> None:
    """Texts that clients give as outputs are no longer than those they give as inputs."""
    length = 0 if given is None else sum(map(len, given))
    if length > limits.characters:
        most = counted(limits.characters, "character")
        raise Invalid(f"{what}: {length:,} characters; allowed: at most {most}")


def written(fields: Fields, given: Given) -> int:
    """Symbols of an output that is given, its end counted."""
    if not isinstance(fields.output, TextField):
        return 1
    return (fields.output.room(given) if isinstance(given, str) else len(given)) + 1


def scored(fields: Fields, rows: Sequence[Mapping[str, str]]) -> int:
    """Symbols of the longest of the outputs that rows hold."""
    return max(written(fields, row[OUTPUT]) for row in rows)
