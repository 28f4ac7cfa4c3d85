"""Charts: figures together with the numbers behind them, saved as PNG, SVG, PDF, HTML or JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.seeing.figure import FORMATS, check_suffix, save_figure, to_svg, write_text
from seq2see.seeing.paper import Paper, fit_chart, paper_of, scale_figure
from seq2see.seeing.style import theme_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Chart:
    """A figure and its numbers.

    kind: the name of the figure; about: what holds for the whole figure; rows: one flat record for each mark;
    draw: makes the matplotlib figure in a theme; draw_sized: the same for a width in inches, for figures that have to
    be laid out anew.
    """

    kind: str
    title: str
    about: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[str], Figure]
    draw_sized: Callable[[str, float], Figure] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All numbers; those that are not finite become None, because JSON has no NaN."""
        record: dict[str, Any] = replace_non_finite(
            {"figure": self.kind, "title": self.title, **self.about, "rows": list(self.rows)}
        )
        return record

    def save(
        self,
        path: str | Path,
        *,
        theme: str | None = None,
        width: str | None = None,
        font_size: float | None = None,
    ) -> Path:
        """Write .png, .svg, .pdf, .html or .json and return the path.

        theme: light or dark; None: light, and for .html the theme of the reader's system. width, font_size: for print,
        as in `figure.save`.
        """
        path, suffix = check_suffix(path, FORMATS)
        paper = paper_of(width, font_size, suffix=suffix)
        if suffix == ".json":
            write_text(path, json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")
        elif suffix == ".html":
            write_text(path, chart_page(self, theme=theme))
        else:
            save_figure(self._figure(theme or "light", paper), path, printed=paper is not None)
        return path

    def _figure(self, theme: str, paper: Paper | None) -> Figure:
        if paper is not None and paper.width is not None and self.draw_sized is not None:
            figure = self.draw_sized(theme, paper.room)
            scale_figure(figure, paper.scale)
            return figure
        figure = self.draw(theme)
        if paper is not None:
            fit_chart(figure, paper)
        return figure

    def table(self) -> tuple[list[str], list[list[str]]]:
        """(column names, rows of cells as text): every key that any row has."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        return columns, [[format_cell(row.get(name)) for name in columns] for row in self.rows]

    def text(self) -> str:
        """The table as tab-separated values."""
        columns, rows = self.table()
        return "".join("\t".join(cells) + "\n" for cells in [columns, *rows])

    def _repr_html_(self) -> str:
        return chart_part(self, theme=None)


def format_cell(value: Any) -> str:
    """A value as the text of a table cell.

    >>> format_cell(0.123456), format_cell(12), format_cell(None), format_cell(["a b", "c"])
    ('0.1235', '12', '', 'a b; c')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else ""
    if isinstance(value, list | tuple):
        return "; ".join(map(format_cell, value))
    return " ".join(str(value).split())


def replace_non_finite(value: Any) -> Any:
    """The same value with None in place of NaN and infinities."""
    if isinstance(value, Mapping):
        return {name: replace_non_finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  background: var(--paper); color: var(--ink) }
figure { margin: 0 } img { max-width: 100%; height: auto }
summary { cursor: pointer; color: var(--muted) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; margin-top: .5rem }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: start; vertical-align: top }
th { color: var(--muted); font-weight: 600 }
"""


def chart_page(chart: Chart, *, theme: str | None) -> str:
    """A standalone HTML page. Without a theme it holds a picture for each theme, and the reader's system chooses."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(chart.title)}</title>
<style>
{_STYLE}{_colours(theme)}</style>
</head>
<body>
<main>
{chart_part(chart, theme=theme)}
</main>
</body>
</html>
"""


def chart_part(chart: Chart, *, theme: str | None) -> str:
    """The picture and its table, for a page or a notebook."""
    columns, rows = chart.table()
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "\n".join("<tr>" + "".join(f'<td dir="auto">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows)
    return f"""<figure>{_picture(chart, theme)}</figure>
<details><summary>the numbers</summary><div class="scroll"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div></details>"""


def _picture(chart: Chart, theme: str | None) -> str:
    light = f'<img alt="{escape(chart.title)}" src="{_data_url(chart, theme or "light")}">'
    if theme is not None:
        return light
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{_data_url(chart, "dark")}">'
    return f"<picture>{dark}{light}</picture>"


def _data_url(chart: Chart, theme: str) -> str:
    """The picture as a data URL."""
    return f"data:image/svg+xml;base64,{base64.b64encode(to_svg(chart.draw(theme))).decode()}"


def _colours(theme: str | None) -> str:
    if theme is not None:
        return _rule(theme)
    return f"{_rule('light')}@media (prefers-color-scheme: dark) {{ {_rule('dark')}}}\n"


def _rule(name: str) -> str:
    theme = theme_named(name)
    return (
        f":root {{ color-scheme: {theme.name}; --paper: {theme.paper}; --ink: {theme.ink}; --muted: {theme.muted}; "
        f"--line: {theme.line} }}\n"
    )
