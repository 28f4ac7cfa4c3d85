"""Looks as one HTML file that needs nothing else: no network, no fonts of its own, and no script to be read."""

from __future__ import annotations

import base64
import json
from html import escape
from importlib import resources
from io import BytesIO
from itertools import zip_longest

import numpy as np
from PIL import Image

from seq2see.looks import Looks, Pixels
from seq2see.seeing.documents import SENTENCE, WORD, Document, documents_of, left_over
from seq2see.seeing.labels import direction_of, visible
from seq2see.seeing.overlays import Hearing, Reel, Scene, Seen, seen_box, seen_of, untold
from seq2see.seeing.panels import Panel, panels_of, top_of_scale
from seq2see.seeing.style import THEMES, Theme, strength, theme_named

# ---------------- A document as a part of a page


def document_section(document: Document, *, named: bool, scale: str = "auto") -> str:
    """The section as HTML; needs the page's style sheet, and no script."""
    title = f'<h2 dir="auto">{escape(document.title)}</h2>\n' if named else ""
    said = "" if document.output is None else f"output: <bdi>{escape(visible(document.output))}</bdi> · "
    of_sentences, of_words = document.top_of_sentences(scale), document.top_of_words(scale)
    sentences = "\n".join(_sentence(document, number, of_sentences, of_words) for number in range(len(document.words)))
    keys = [key_line(of_sentences, SENTENCE)] if document.sentences is not None else []
    return f"""<section aria-label="{escape(document.name)}">
{title}<p class="caption">{said}{escape(document.caption)}</p>
<ol class="document" dir="{document.direction}">
{sentences}
</ol>
{"".join([*keys, key_line(of_words, WORD)])}
</section>"""


def key_line(top: float, meaning: str = "attention weight") -> str:
    """Which colour stands for which weight."""
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
    shown, told = escape(visible(word)), f'title="{weight:.3f}"'
    return f'<span class="word {strength(share)}" {told} style="--w:{share:.3f}">{shown}</span>'


# ---------------- Scenes as a part of a page

QUALITY = 88


def scene_section(scene: Scene, *, theme: str | None, named: bool) -> str:
    """The section as HTML; needs the page's style sheet, and no script. Without a theme there is a picture for each,
    of which the reader's system shows one."""
    themes = [theme_named(theme)] if theme is not None else list(THEMES.values())
    head = "" if scene.head is None else f" · head {scene.head}"
    title = f'<h2 dir="auto">{escape(scene.name)}{head}</h2>\n' if named or head else ""
    whole = _figure(
        "as the model sees it", "", f'<img alt="the picture" src="{_scene_data(scene.picture)}">', kind=" whole"
    )
    looks = "\n".join(_look(scene, step, themes) for step in range(len(scene.outputs)))
    return f"""<section aria-label="{escape(scene.name)}">
{title}<p class="caption">lit: where it looked, fully at a weight of {scene.top:g}</p>
<div class="scenes">
{whole}
{looks}
</div>
</section>"""


def _look(scene: Scene, step: int, themes: list[Theme]) -> str:
    word = escape(visible(scene.outputs[step]))
    alone = len(themes) == 1
    pictures = "".join(
        f'<img{"" if alone else f" class={theme.name}"} alt="where it looked for {word}" '
        f'src="{_scene_data(scene.lit(step, theme))}">'
        for theme in themes
    )
    return _figure(word, scene.said(step) or "", pictures)


def _figure(word: str, said: str, pictures: str, *, kind: str = "") -> str:
    caption = f"<figcaption><b><bdi>{word}</bdi></b> <span>{said}</span></figcaption>"
    return f'<figure class="scene{kind}" tabindex="0">{caption}{pictures}</figure>'


def _scene_data(picture: Pixels) -> str:
    """A picture as the address of itself."""
    file = BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


# ---------------- Films and sounds as a part of a page

DPI = 120


def seen_section(seen: Seen, *, theme: str | None, named: bool) -> str:
    """The section as HTML; needs the page's style sheet, and no script. Without a theme there is a drawing for each, of
    which the reader's system shows one."""
    if not isinstance(seen, Reel | Hearing):
        return scene_section(seen, theme=theme, named=named)
    what = "frames that were looked at" if isinstance(seen, Reel) else "spectrogram with the weights over time"
    themes = [theme_named(theme).name] if theme is not None else list(THEMES)
    title = f'<h2 dir="auto">{escape(seen.name)}</h2>\n' if named else ""
    words = escape(" ".join(seen.outputs))
    pictures = "".join(
        f'<img{"" if len(themes) == 1 else f" class={name}"} alt="{what} for: {words}" '
        f'src="{_overlay_data(seen, name)}">'
        for name in themes
    )
    return f"""<section aria-label="{escape(seen.name)}">
{title}<figure class="drawing scroll">{pictures}</figure>
</section>"""


def _overlay_data(seen: Seen, theme: str) -> str:
    """The drawing as the address of itself."""
    from seq2see.seeing.fonts import Lettering  # late: pages of pictures need no matplotlib
    from seq2see.seeing.sheet import Manner, on_paper

    manner = Manner(theme_named(theme), Lettering())
    figure, file = on_paper(seen_box(seen, manner), manner.theme), BytesIO()
    manner.letters.report_missing()
    figure.savefig(file, format="png", dpi=DPI, facecolor=figure.get_facecolor(), metadata={"Software": "seq2see"})
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


_DENSE = 28  # places or steps from which cells are small
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_HOW = "Point at an output, or reach it with the Tab and arrow keys: inputs are shaded by how much it looked at them."
_HOW_INNER = "Point at what looks, or reach it with the Tab and arrow keys: what it looks at is shaded by how much."
_STRONG = {"light": "s2", "dark": "s1"}  # the class of shares of the scale on which each theme's text changes sides


def page(
    looks: Looks,
    *,
    map: str | None = None,
    title: str | None = None,
    theme: str | None = None,
    direction: str = "auto",
    scale: str = "auto",
) -> str:
    """The page as text; options as in `saving.save`. Symbols are escaped; the page forbids itself to load anything."""
    groups = panels_of(looks, map=map, direction=direction)
    seen = seen_of(looks, groups, apart=map is not None, scale=scale)
    groups = untold(groups, seen)
    heading = title or "Where the model looked"
    documents = documents_of(looks, map=map, direction=direction)
    groups = left_over(groups, documents)
    named = len({one.name for one in [*seen, *documents]} | {group[0].name for group in groups}) > 1
    inner = any(group[0].inner for group in groups)
    tops = [top_of_scale(group, scale=scale) for group in groups]
    parts = [
        _section(group, index, top, named=named or group[0].inner or bool(group[0].layer))
        for index, (group, top) in enumerate(zip(groups, tops, strict=True))
    ]
    parts = [*(seen_section(one, theme=theme, named=named) for one in seen), *parts]
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
    """The texts that were read with what is shown."""
    return "".join(
        f'<p class="beside"><span>{escape(name)}:</span> <bdi>{escape(text)}</bdi></p>\n'
        for name, text in looks.beside.items()
    )


def _section(group: list[Panel], index: int, top: float, *, named: bool) -> str:
    panel, first = group[0], _views(group)[0]
    way = direction_of(panel.outputs)
    heads = ""
    if len(group) > 1:
        names = ["mean", *(f"head {head.head}" for head in group)]
        buttons = "".join(
            f'<button type="button" data-head aria-pressed="{"false" if index else "true"}">{name}</button>'
            for index, name in enumerate(names)
        )
        heads = f'<div class="heads" role="group" aria-label="heads">{buttons}</div>\n'
    outputs = "".join(
        f'<button type="button" class="token" data-step="{step}" dir="auto">{_shown(symbol)}</button>'
        for step, symbol in enumerate(panel.outputs)
    )
    inputs = "".join(
        f'<button type="button" class="token {strength(weight / top)}" data-place="{place}" dir="auto"'
        f' style="--w:{weight / top:.3f}">{_shown(symbol)}</button>'
        for place, (symbol, weight) in enumerate(zip(panel.inputs, first[0], strict=True))
    )
    title = f'<h2 dir="auto">{escape(panel.title)}</h2>\n' if named else ""
    return f"""<section data-map="{index}" aria-label="{escape(panel.name)}">
{title}{heads}<p class="caption">{panel.down}</p>
<div class="strip outputs" role="group" aria-label="{panel.down} symbols" dir="{way}">{outputs}</div>
<p class="caption">{panel.across}</p>
<div class="strip inputs" role="group" aria-label="{panel.across} symbols" dir="{panel.direction}">{inputs}</div>
<p class="readout" role="status" aria-live="polite" dir="ltr"></p>
{_table(panel, first, top)}
{key_line(top)}
</section>"""


def _table(panel: Panel, weights: np.ndarray, top: float) -> str:
    """The heatmap: a table, so that it can be read aloud and copied into a spreadsheet."""
    columns = "".join(f'<th scope="col"><bdi>{_shown(symbol)}</bdi></th>' for symbol in panel.inputs)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{_shown(symbol)}</bdi></th>{_cells(row, top, place)}</tr>'
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
    """Matrices a reader can choose from: the mean of the heads first, then each; one where there are no heads."""
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


def _shown(symbol: str) -> str:
    return escape(visible(symbol))


def _embedded(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _style(theme: str | None) -> str:
    """The style sheet in one theme, or in both with the reader's system choosing."""
    if theme is not None:
        rules = _rules(theme_named(theme))
    else:
        dark = "(prefers-color-scheme: dark)"
        rules = f"@media not {dark} {{\n{_rules(THEMES['light'])}\n}}\n@media {dark} {{\n{_rules(THEMES['dark'])}\n}}"
    return f"{_asset('page.css')}{rules}\n"


def _rules(theme: Theme) -> str:
    """What a theme decides: the colours, and where text on strong ones takes the colour of the paper."""
    strong = _STRONG[theme.name]
    return f""":root {{
  color-scheme: {theme.name}; --paper: {theme.paper}; --ink: {theme.ink}; --muted: {theme.muted}; --line: {theme.line};
  --light: {"block" if theme.name == "light" else "none"}; --dark: {"none" if theme.name == "light" else "block"};
  --ramp: linear-gradient(to right, {", ".join(theme.ramp)});
}}
.token.{strong}, .word.{strong}, .share.{strong}, tr.active td.{strong}, td.active.{strong} {{
  color: var(--paper);
}}"""


# ---------------- Looks in a notebook

HEIGHT = 460
"""Pixels of the frame; what is longer can be scrolled."""


def inline(looks: Looks, *, said: str = "") -> str:
    """HTML for `_repr_html_`: the page stands in a frame, so that neither its styles nor those of the notebook reach
    the other; where there is no map, why. said: what the model answered."""
    answer = f'<p dir="auto"><b>{escape(said)}</b></p>\n' if said else ""
    if not looks.maps:
        return f"{answer}<p>{escape(looks.reason or 'this model has no attention: there is nothing to look at')}</p>"
    held = escape(page(looks), quote=True)
    frame = f'style="width: 100%; height: {HEIGHT}px; border: 0; resize: vertical; overflow: auto"'
    return f'{answer}<iframe title="where the model looked" sandbox="allow-scripts" {frame} srcdoc="{held}"></iframe>'
