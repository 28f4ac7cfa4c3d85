"""A chart as one HTML file that needs nothing else: the picture inside it, and its numbers as a table."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING

from seq2see.seeing.saving import svg_of
from seq2see.seeing.style import THEMES, theme_named

if TYPE_CHECKING:
    from seq2see.seeing.charts import Chart

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
