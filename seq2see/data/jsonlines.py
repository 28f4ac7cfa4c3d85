"""JSON lines: one object per line, its keys the columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2see.data.formats import UNKNOWN, Format, Row, formats
from seq2see.data.output import text_file
from seq2see.data.sources import RowError, lines
from seq2see.errors import UserError, listing, nearest


@formats.register("jsonl")
class JsonLines(Format):
    """The first object's keys are the columns; later objects must have them and may have more."""

    _columns: list[str]

    def columns(self) -> list[str]:
        first = next(self._objects(), None)
        if first is None:
            raise UserError(f"{self.path}: the file is empty")
        self._columns = list(first[1])
        if not self._columns:
            raise UserError(f"{self.path}, line {first[0]}: an object without keys")
        return self._columns

    def rows(self) -> Iterator[Row]:
        expected = set(self._columns)
        for line, values, size in self._objects():
            if not expected <= values.keys():
                missing = [name for name in self._columns if name not in values]
                self.bad(
                    RowError(
                        f"{self.path}, line {line}: key '{missing[0]}' is missing{nearest(missing[0], values)};"
                        f" found: {listing(values)}"
                    )
                )
                continue
            yield Row(values, line, size)

    def _objects(self) -> Iterator[tuple[int, dict[str, Any], int]]:
        """(line, object, its size: of one with lists or objects in it, which take more than they are written with, it
        is not known)."""
        for line, text in lines(self.path, encoding=self.settings.encoding, bad=self.bad):
            if not text or text.isspace():
                continue
            try:
                flat = "[" not in text and text.count("{") == 1
                yield line, _object(text), len(text) if flat else UNKNOWN
            except ValueError as error:
                self.bad(RowError(f"{self.path}, line {line}{error}"))

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        with text_file(path, packed=packed) as file:
            for row in rows:
                file.write(json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False) + "\n")


def _object(text: str) -> dict[str, Any]:
    """A JSON object; a ValueError says what else the text is, or where it goes wrong."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f", character {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(": not JSON that can be read: nested too deeply") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise ValueError(f": not JSON that can be read: {str(error).partition(';')[0]}") from None
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a string", type(None): "null"}.get(type(value), "a number or truth value")
        raise ValueError(f': {kind}, where an object {{"column": value}} is expected')
    if "\\u" in text and "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(": half of a surrogate pair (\\ud800 to \\udfff) is not text") from None
    return value
