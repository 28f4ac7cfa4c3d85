"""Results that are shown as tables: plain text in a terminal, HTML in a notebook."""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

LINE_WIDTH = 500
"""Characters of a line: wide enough that no cell of a table is broken."""

CELL = "padding: 0.2em 0.8em; border: 0; border-bottom: 1px solid #8884; text-align: "


class Tabular:
    """A result with `tables` and, below them, `remarks`. print() shows it as text, a notebook as HTML."""

    line_width = LINE_WIDTH

    def tables(self) -> list[Table]:
        """The tables, of rich (which is imported late: JSON needs none)."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """What a reader should know beside the numbers."""
        return []

    def text(self, *, width: int | None = None) -> str:
        """As plain text."""
        from rich.console import Console

        console = Console(file=StringIO(), width=width or self.line_width, color_system=None)
        with console.capture() as captured:
            for table in self.tables():
                console.print(table)
        return "\n".join([captured.get().rstrip("\n"), *self.remarks(), ""])

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """In a notebook."""
        remarks = "".join(f"<p>{escape(line)}</p>\n" for line in self.remarks())
        return "\n".join(map(table_html, self.tables())) + "\n" + remarks


def table_html(table: Table) -> str:
    """A table of rich as HTML; a section ends with a thicker line."""
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    sides = ["right" if column.justify == "right" else "left" for column in table.columns]
    cells = zip((str(column.header) for column in table.columns), sides, strict=True)
    head = "".join(f'<th style="{CELL}{side}">{escape(text)}</th>' for text, side in cells)
    lines = []
    for row, texts in zip(table.rows, zip(*columns, strict=True), strict=True):
        thick = "; border-bottom-width: 2px" if row.end_section else ""
        pairs = zip(texts, sides, strict=True)
        lines.append("".join(f'<td style="{CELL}{side}{thick}">{escape(text)}</td>' for text, side in pairs))
    caption = f'<caption style="text-align: left">{escape(str(table.title))}</caption>' if table.title else ""
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<table style="border-collapse: collapse; font-variant-numeric: tabular-nums">{caption}\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    )
