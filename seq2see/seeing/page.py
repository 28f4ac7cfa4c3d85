"""Attention as a standalone HTML page: no network access, no fonts of its own, readable without scripts."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from itertools import zip_longest

import numpy as np

from seq2see.looks import Looks
from seq2see.seeing.documents import SENTENCE, WORD, Document, documents_of, without_document
from seq2see.seeing.labels import direction_of, visible
from seq2see.seeing.overlays import overlays_of, to_list
from seq2see.seeing.panels import Panel, panels_of, top_of_scale
from seq2see.seeing.style import THEMES, Theme, strength, theme_named


def document_section(document: Document, *, named: bool, scale: str = "auto") -> str:
    """A document as a section of a page."""
    title = f'<h2 dir="auto">{escape(document.title)}</h2>\n' if named else ""
    caption = "" if document.output is None else f"output: <bdi>{escape(visible(document.output))}</bdi> · "
    of_sentences, of_words = document.top_of_sentences(scale), document.top_of_words(scale)
    sentences = "\n".join(_sentence(document, number, of_sentences, of_words) for number in range(len(document.words)))
    keys = [key_line(of_sentences, SENTENCE)] if document.sentences is not None else []
    return f"""<section aria-label="{escape(document.name)}">
{title}<p class="caption">{caption}{escape(document.caption)}</p>
<ol class="document" dir="{document.direction}">
{sentences}
</ol>
{"".join([*keys, key_line(of_words, WORD)])}
</section>"""


def key_line(top: float, meaning: str = "attention weight") -> str:
    """The colour bar of a scale."""
    return f'<p class="key"><span>0</span><i></i><span>{top:g}</span><span>{meaning}</span></p>'


def _sentence(document: Document, number: int, top: float, of_words: float) -> str:
    share = ""
    if document.sentences is not None:
        weight = float(document.sentences[number])
        share = f'<b class="share {strength(weight / top)}" style="--w:{weight / top:.3f}">{weight:.2f}</b>'
    pairs = zip(document.words[number], document.within[number], strict=True)
    words = " ".join(_word(word, float(weight), of_words) for word, weight in pairs)
    return f"<li>{share}<span>{words}</span></li>"


def _word(word: str, weight: float, top: float) -> str:
    share = weight / top
    text, tooltip = escape(visible(word)), f'title="{weight:.3f}"'
    return f'<span class="word {strength(share)}" {tooltip} style="--w:{share:.3f}">{text}</span>'


_DENSE = 28  # from this number of places or steps on, cells are small
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_HOW = "Point at an output, or reach it with the Tab and arrow keys: inputs are shaded by how much it looked at them."
_HOW_INNER = "Point at what looks, or reach it with the Tab and arrow keys: what it looks at is shaded by how much."
_STRONG = {"light": "s2", "dark": "s1"}  # the class of shaded elements whose text takes the colour of the paper


def page(
    looks: Looks,
    *,
    map: str | None = None,
    title: str | None = None,
    theme: str | None = None,
    direction: str = "auto",
    scale: str = "auto",
) -> str:
    """The HTML page; options as in `figure.save`. Symbols are escaped, and a content security policy forbids
    loading."""
    groups = panels_of(looks, map=map, direction=direction)
    overlays = overlays_of(looks, groups, separate_heads=map is not None, scale=scale)
    groups = to_list(groups, overlays)
    heading = title or "Where the model looked"
    documents = documents_of(looks, map=map, direction=direction)
    groups = without_document(groups, documents)
    named = (
        len(
            {overlay.name for overlay in overlays}
            | {document.name for document in documents}
            | {group[0].name for group in groups}
        )
        > 1
    )
    inner = any(group[0].inner for group in groups)
    tops = [top_of_scale(group, scale=scale) for group in groups]
    parts = [
        _section(group, index, top, named=named or group[0].inner or bool(group[0].layer))
        for index, (group, top) in enumerate(zip(groups, tops, strict=True))
    ]
    parts = [*(overlay.section(theme=theme, named=named) for overlay in overlays), *parts]
    sections = "\n".join([*parts, *(document_section(document, named=named, scale=scale) for document in documents)])
    data = {"maps": [_data(group, top) for group, top in zip(groups, tops, strict=True)]}
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(heading)}</title>
<style>
{_style(theme)}</style>
</head>
<body>
<main>
<h1 dir="auto">{escape(heading)}</h1>
{_beside(looks)}{f'<p class="how">{_HOW_INNER if inner else _HOW}</p>' if groups else ""}
{sections}
</main>
<script type="application/json" id="looks">{_embedded(data)}</script>
<script>
{_asset("page.js")}</script>
</body>
</html>
"""


def _beside(looks: Looks) -> str:
    """Texts that the model read but did not look at."""
    return "".join(
        f'<p class="beside"><span>{escape(name)}:</span> <bdi>{escape(text)}</bdi></p>\n'
        for name, text in looks.beside.items()
    )


def _section(group: list[Panel], index: int, top: float, *, named: bool) -> str:
    panel, first = group[0], _views(group)[0]
    direction = direction_of(panel.outputs)
    heads = ""
    if len(group) > 1:
        names = ["mean", *(f"head {head.head}" for head in group)]
        buttons = "".join(
            f'<button type="button" data-head aria-pressed="{"false" if index else "true"}">{name}</button>'
            for index, name in enumerate(names)
        )
        heads = f'<div class="heads" role="group" aria-label="heads">{buttons}</div>\n'
    outputs = "".join(
        f'<button type="button" class="token" data-step="{step}" dir="auto">{_escaped(symbol)}</button>'
        for step, symbol in enumerate(panel.outputs)
    )
    inputs = "".join(
        f'<button type="button" class="token {strength(weight / top)}" data-place="{place}" dir="auto"'
        f' style="--w:{weight / top:.3f}">{_escaped(symbol)}</button>'
        for place, (symbol, weight) in enumerate(zip(panel.inputs, first[0], strict=True))
    )
    title = f'<h2 dir="auto">{escape(panel.title)}</h2>\n' if named else ""
    return f"""<section data-map="{index}" aria-label="{escape(panel.name)}">
{title}{heads}<p class="caption">{panel.down}</p>
<div class="strip outputs" role="group" aria-label="{panel.down} symbols" dir="{direction}">{outputs}</div>
<p class="caption">{panel.across}</p>
<div class="strip inputs" role="group" aria-label="{panel.across} symbols" dir="{panel.direction}">{inputs}</div>
<p class="readout" role="status" aria-live="polite" dir="ltr"></p>
{_table(panel, first, top)}
{key_line(top)}
</section>"""


def _table(panel: Panel, weights: np.ndarray, top: float) -> str:
    """The heatmap as a table, which screen readers can read and spreadsheets can paste."""
    columns = "".join(f'<th scope="col"><bdi>{_escaped(symbol)}</bdi></th>' for symbol in panel.inputs)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{_escaped(symbol)}</bdi></th>{_cells(row, top, place)}</tr>'
        for symbol, row, place in zip_longest(panel.outputs, weights, panel.chosen)
    )
    classes = ["dense"] * (max(panel.steps, panel.places) >= _DENSE)
    classes += ["long"] * (max(len(visible(symbol)) for symbol in panel.inputs) > 2)
    height = "tall" if panel.steps > _DENSE else "short"
    return f"""<div class="scroll {height}" tabindex="0" role="region" aria-label="heatmap">
<table class="{" ".join(classes)}" dir="{panel.direction}">
<caption class="hidden">attention weights: rows are {panel.down}, columns {panel.across}</caption>
<thead><tr><th scope="col">{_corner(panel)}</th>{columns}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>"""


def _corner(panel: Panel) -> str:
    return f"{panel.across} {'←' if panel.direction == 'rtl' else '→'}<br>{panel.down} ↓"


def _cells(row: np.ndarray, top: float, chosen: int | None) -> str:
    return "".join(_cell(weight, top, chosen=place == chosen) for place, weight in enumerate(row))


def _cell(weight: float, top: float, *, chosen: bool) -> str:
    text = "" if weight < 0.005 else f"{weight:.2f}".removeprefix("0")
    marked = ' title="chosen"' if chosen else ""
    classes = f"{strength(weight / top)}{' chosen' if chosen else ''}"
    return f'<td class="{classes}"{marked} style="--w:{weight / top:.3f}">{text}</td>'


def _views(group: list[Panel]) -> list[np.ndarray]:
    """The matrices to choose from: the mean of the heads, then each head."""
    matrices = [panel.weights for panel in group]
    return matrices if len(matrices) == 1 else [np.mean(matrices, axis=0), *matrices]


def _data(group: list[Panel], top: float) -> dict[str, object]:
    return {
        "inputs": [visible(symbol) for symbol in group[0].inputs],
        "outputs": [visible(symbol) for symbol in group[0].outputs],
        "direction": group[0].direction,
        "top": top,
        "heads": [matrix.round(6).tolist() for matrix in _views(group)],
    }


def _escaped(symbol: str) -> str:
    return escape(visible(symbol))


def _embedded(data: object) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _style(theme: str | None) -> str:
    """The style sheet in one theme, or in both with a media query."""
    if theme is not None:
        rules = _rules(theme_named(theme))
    else:
        dark = "(prefers-color-scheme: dark)"
        rules = f"@media not {dark} {{\n{_rules(THEMES['light'])}\n}}\n@media {dark} {{\n{_rules(THEMES['dark'])}\n}}"
    return f"{_asset('page.css')}{rules}\n"


def _rules(theme: Theme) -> str:
    """The colours of a theme."""
    strong = _STRONG[theme.name]
    return f""":root {{
  color-scheme: {theme.name}; --paper: {theme.paper}; --ink: {theme.ink}; --muted: {theme.muted}; --line: {theme.line};
  --light: {"block" if theme.name == "light" else "none"}; --dark: {"none" if theme.name == "light" else "block"};
  --ramp: linear-gradient(to right, {", ".join(theme.ramp)});
}}
.token.{strong}, .word.{strong}, .share.{strong}, tr.active td.{strong}, td.active.{strong} {{
  color: var(--paper);
}}"""


HEIGHT = 460
"""Height of the notebook frame in pixels; longer pages scroll."""


def inline(looks: Looks, *, answer: str = "") -> str:
    """HTML for `_repr_html_`: the page in a frame, which separates its styles from the notebook's.

    answer: the model's output, shown above; without a map the reason is shown instead.
    """
    answer = f'<p dir="auto"><b>{escape(answer)}</b></p>\n' if answer else ""
    if not looks.maps:
        return f"{answer}<p>{escape(looks.reason or 'this model has no attention: there is nothing to show')}</p>"
    source = escape(page(looks), quote=True)
    frame = f'style="width: 100%; height: {HEIGHT}px; border: 0; resize: vertical; overflow: auto"'
    return f'{answer}<iframe title="where the model looked" sandbox="allow-scripts" {frame} srcdoc="{source}"></iframe>'
