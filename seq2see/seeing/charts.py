"""A figure with the numbers behind it: drawn in either theme, written to any format, told as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.seeing.saving import FORMATS, checked, save_figure, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Chart:
    """kind: which figure; about: what holds for all of it; rows: its numbers, one flat record for each mark;
    draw: makes the picture in a theme."""

    kind: str
    title: str
    about: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[str], Figure]

    def to_dict(self) -> dict[str, Any]:
        """All of its numbers; what is not finite, which JSON has not, is null."""
        told: dict[str, Any] = finite({"figure": self.kind, "title": self.title, **self.about, "rows": list(self.rows)})
        return told

    def save(self, path: str | Path, *, theme: str | None = None) -> Path:
        """Write .png, .svg, .html or .json, and give the path back. theme: light or dark; None: light, and for .html
        whichever the reader's system asks for."""
        path, suffix = checked(path, FORMATS)
        if suffix == ".json":
            write(path, json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")
        elif suffix == ".html":
            from seq2see.seeing.chart_page import chart_page

            write(path, chart_page(self, theme=theme))
        else:
            save_figure(self.draw(theme or "light"), path)
        return path

    def table(self) -> tuple[list[str], list[list[str]]]:
        """(names of columns, cells as text): all that any row tells."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        return columns, [[shown(row.get(name)) for name in columns] for row in self.rows]

    def text(self) -> str:
        """The table with tabs between its columns."""
        columns, rows = self.table()
        return "".join("\t".join(cells) + "\n" for cells in [columns, *rows])

    def _repr_html_(self) -> str:
        from seq2see.seeing.chart_page import chart_part

        return chart_part(self, theme=None)


def shown(value: Any) -> str:
    """A cell of a table.

    >>> shown(0.123456), shown(12), shown(None), shown(["a b", "c"])
    ('0.1235', '12', '', 'a b; c')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else ""
    if isinstance(value, list | tuple):
        return "; ".join(map(shown, value))
    return " ".join(str(value).split())


def finite(value: Any) -> Any:
    """The same with None in place of numbers that are none."""
    if isinstance(value, Mapping):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
