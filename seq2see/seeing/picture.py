"""Looks as a matplotlib figure: a title, each map under its name, heads side by side, and the key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seq2see.looks import Looks
from seq2see.seeing.documents import ShadedWords, documents_of, left_over, shaded_document
from seq2see.seeing.fonts import Lettering
from seq2see.seeing.heatmap import banded
from seq2see.seeing.labels import visible
from seq2see.seeing.overlays import Seen, seen_box, seen_of, unseen
from seq2see.seeing.panels import Panel, panels_of, top_of_scale
from seq2see.seeing.sheet import Box, Column, Key, Manner, Words, flow, on_paper
from seq2see.seeing.style import theme_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDEST_ROW_OF_HEADS = 20.0
NARROWEST_TITLE = 4.5
MOST_BESIDE = 8
"""Lines of a text that stands beside what is drawn; a page and the numbers have all of it."""


def picture(
    looks: Looks,
    *,
    map: str | None = None,
    title: str | None = None,
    theme: str = "light",
    direction: str = "auto",
    scale: str = "auto",
    spell: bool = True,
) -> Figure:
    """Draw the named map, or all of them, each with its own scale: beside the looks at ten sentences those at a
    thousand words would be blank. Options as in `saving.save`; `spell` as in `Lettering`."""
    groups = panels_of(looks, map=map, direction=direction)
    seen = seen_of(looks, groups, apart=map is not None, scale=scale)
    groups = unseen(groups, seen)
    manner = Manner(theme_named(theme), Lettering(spell=spell))
    documents = documents_of(looks, map=map, direction=direction)
    groups = left_over(groups, documents)
    several = len(groups) + len(documents) + len({one.name for one in seen}) > 1
    boxes: list[Box] = [_seen(one, manner, named=several) for one in seen]
    boxes += [
        _map(group, manner, named=several or group[0].inner or bool(group[0].layer), scale=scale) for group in groups
    ]
    boxes += [shaded_document(document, manner, named=several, scale=scale) for document in documents]
    body = Column(boxes, gap=0.42)
    width = max(body.width, NARROWEST_TITLE)
    heads = [_wrapped(title, manner, width=width, bold=True)] if title and title.strip() else []
    heads += [_wrapped(f"{name}: {text}", manner, width=width, most=MOST_BESIDE) for name, text in looks.beside.items()]
    figure = on_paper(Column([*heads, body], gap=0.24) if heads else body, manner.theme)
    manner.letters.report_missing()
    return figure


def _wrapped(text: str, manner: Manner, *, width: float, bold: bool = False, most: int = 0) -> Box:
    """Words in as many lines as they need, for titles are often the input itself; most: in so many, and then cut."""
    size = 12.5 if bold else 11.0

    def line_of(words: str) -> Words:
        return Words(manner.letters.text(words), manner.theme.ink, size=size, bold=bold)

    written = list[str]()
    for word in text.split():
        longer = f"{written[-1]} {word}" if written else word
        if written and line_of(longer).width <= width:
            written[-1] = longer
        elif most and len(written) == most:
            written[-1] += " …"
            break
        else:
            written.append(word)
    return Column([line_of(words) for words in written], gap=0.06)


def _seen(seen: Seen, manner: Manner, *, named: bool) -> Box:
    """A picture, film or sound and where it was looked at, under its name where there are several maps."""
    box = seen_box(seen, manner)
    if not named:
        return box
    return Column([Words(manner.letters.text(seen.name), manner.theme.ink, size=11, bold=True), box], gap=0.1)


def _map(group: list[Panel], manner: Manner, *, named: bool, scale: str) -> Box:
    """One map and its key: its name where there are several, its heads side by side where there are several."""
    own = replace(manner, top=top_of_scale(group, scale=scale))
    heads = [_panel(panel, own) for panel in group]
    drawn = heads[0] if len(heads) == 1 else flow(heads, width=max(WIDEST_ROW_OF_HEADS, heads[0].width))
    body = Column([drawn, Key(own)], gap=0.24)
    if not named:
        return body
    return Column([Words(manner.letters.text(group[0].title), manner.theme.ink, size=11, bold=True), body], gap=0.1)


def _panel(panel: Panel, manner: Manner) -> Box:
    """A matrix as a heatmap; a single row as shaded words under what it led to."""
    captions: list[str] = [] if panel.head is None else [f"head {panel.head}"]
    if panel.steps == 1:
        captions.append(f"{panel.down}: {visible(panel.outputs[0])}")
    body: Box = ShadedWords(panel, manner) if panel.steps == 1 else banded(panel, manner)
    if not captions:
        return body
    return Column([Words(manner.letters.text(" · ".join(captions)), manner.theme.muted, size=9), body], gap=0.09)
