"""Plain text: one column called `text`, one row per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2see.data.formats import Format, Row, as_text, formats
from seq2see.data.output import text_file
from seq2see.data.sources import lines
from seq2see.errors import UserError

COLUMN = "text"


@formats.register("txt")
class Plain(Format):
    """Every line is a row, an empty one too: line 7 of the predictions answers line 7 of the file."""

    named = False

    def columns(self) -> list[str]:
        if not any(text.strip() for _, text in lines(self.path, encoding=self.settings.encoding, bad=self.bad)):
            raise UserError(f"{self.path}: the file is empty")
        return [COLUMN]

    def rows(self) -> Iterator[Row]:
        for line, text in lines(self.path, encoding=self.settings.encoding, bad=self.bad):
            yield Row({COLUMN: text}, line, len(text))

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        if len(columns) != 1:
            raise UserError(
                f"a .txt file holds one column, not {len(columns)} ({', '.join(columns)}); write .tsv, .csv or .jsonl"
            )
        with text_file(path, packed=packed) as file:
            for row in rows:
                file.write(" ".join(as_text(row.get(columns[0])).splitlines()) + "\n")
