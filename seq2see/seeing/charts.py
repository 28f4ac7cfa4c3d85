"""A figure with the numbers behind it: drawn in either theme, written to any format, told as a table."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.seeing.saving import FORMATS, checked, save_figure, svg_of, write
from seq2see.seeing.style import THEMES, theme_named

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


# ---------------- A chart as one HTML file that needs nothing else

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
    """The page as text. Without a theme it holds a picture for each, of which the reader's system shows one."""
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
    """The picture and the table, for a page or a notebook."""
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
    light = f'<img alt="{escape(chart.title)}" src="{_data(chart, theme or "light")}">'
    if theme is not None:
        return light
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{_data(chart, "dark")}">'
    return f"<picture>{dark}{light}</picture>"


def _data(chart: Chart, theme: str) -> str:
    """The picture as the address of itself."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg_of(chart.draw(theme))).decode()}"


def _colours(theme: str | None) -> str:
    if theme is not None:
        return _rule(theme)
    return f"{_rule('light')}@media (prefers-color-scheme: dark) {{ {_rule('dark')}}}\n"


def _rule(name: str) -> str:
    one = THEMES[theme_named(name).name]
    return (
        f":root {{ color-scheme: {one.name}; --paper: {one.paper}; --ink: {one.ink}; --muted: {one.muted}; "
        f"--line: {one.line} }}\n"
    )
