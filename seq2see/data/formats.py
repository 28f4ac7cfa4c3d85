"""What a format of tables has to offer. Each format is one file beside this one and registers itself by suffix."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seq2see.data.sources import RowError
from seq2see.recipe.schema import DataSettings
from seq2see.registry import Registry

UNKNOWN = -1


class Row(NamedTuple):
    """Values by column, and the line of the file (the row's number in formats without lines) where they begin.

    size: characters of the row as it is written, or more: no value of it has more than these. It spares measuring every
    value. Of rows that are read in blocks, where the whole block is within the limit of a value, it may be their mean.
    """

    values: dict[str, Any]
    line: int
    size: int = UNKNOWN


class Format(ABC):
    """How one format is read and written. A reader hands rows it cannot read to `bad` and goes on if that returns."""

    unit = "line"
    headed = False
    """Whether the first line names the columns."""
    named = True
    """Whether the file itself says how its columns are called."""
    in_memory = False
    """Whether the rows are held in memory, so that there is no file that they could have been unpacked from."""

    def __init__(self, path: Path, settings: DataSettings, *, bad: Callable[[RowError], None]):
        self.path = path
        self.settings = settings
        self.bad = bad

    @property
    def notes(self) -> list[str]:
        """What was decided while reading and the user should know."""
        return []

    @abstractmethod
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Every row, from the start at each call."""

    @staticmethod
    @abstractmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        """Write a table; `packed`: compressed by gzip."""


formats: Registry[type[Format]] = Registry("format of tables")


def as_text(value: Any) -> str:
    """A value as a field of text: nothing for None, JSON for what is neither text nor a number."""
    if value is None:
        return ""
    return str(value) if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
