"""Attention as a matplotlib figure: title, one section per map, heads side by side, colour bars."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seq2see.looks import Looks
from seq2see.seeing.documents import ShadedWords, documents_of, shaded_document, without_document
from seq2see.seeing.fonts import Labeller
from seq2see.seeing.heatmap import heatmap
from seq2see.seeing.labels import visible
from seq2see.seeing.overlays import Overlay, overlays_of, without_overlay
from seq2see.seeing.panels import Panel, panels_of, top_of_scale
from seq2see.seeing.sheet import Box, ColourBar, Column, Style, TextLine, flow, make_figure
from seq2see.seeing.style import theme_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDEST_ROW_OF_HEADS = 20.0
NARROWEST_TITLE = 4.5
MAX_LINES = 8
"""Lines of a text that is shown with the figure; HTML and JSON have all of it."""


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
    """Draw the selected maps, each on its own scale; options as in `saving.save`, `spell` as in `Labeller`."""
    groups = panels_of(looks, map=map, direction=direction)
    overlays = overlays_of(looks, groups, separate_heads=map is not None, scale=scale)
    groups = without_overlay(groups, overlays)
    style = Style(theme_named(theme), Labeller(spell=spell))
    documents = documents_of(looks, map=map, direction=direction)
    groups = without_document(groups, documents)
    named = len(groups) + len(documents) + len({overlay.name for overlay in overlays}) > 1
    boxes: list[Box] = [_overlay(overlay, style, named=named) for overlay in overlays]
    boxes += [
        _map(group, style, named=named or group[0].inner or bool(group[0].layer), scale=scale) for group in groups
    ]
    boxes += [shaded_document(document, style, named=named, scale=scale) for document in documents]
    body = Column(boxes, gap=0.42)
    width = max(body.width, NARROWEST_TITLE)
    parts = [_wrapped(title, style, width=width, bold=True)] if title and title.strip() else []
    parts += [_wrapped(f"{name}: {text}", style, width=width, limit=MAX_LINES) for name, text in looks.beside.items()]
    figure = make_figure(Column([*parts, body], gap=0.24) if parts else body, style.theme)
    style.labeller.report_missing()
    return figure


def _wrapped(text: str, style: Style, *, width: float, bold: bool = False, limit: int = 0) -> Box:
    """A text wrapped to a width in inches, cut after `limit` lines."""
    size = 12.5 if bold else 11.0

    def line_of(words: str) -> TextLine:
        return TextLine(style.labeller.text(words), style.theme.ink, size=size, bold=bold)

    lines = list[str]()
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and line_of(longer).width <= width:
            lines[-1] = longer
        elif limit and len(lines) == limit:
            lines[-1] += " …"
            break
        else:
            lines.append(word)
    return Column([line_of(words) for words in lines], gap=0.06)


def _overlay(overlay: Overlay, style: Style, *, named: bool) -> Box:
    """An overlay, under its name if there are several maps."""
    box = overlay.box(style)
    if not named:
        return box
    return Column([TextLine(style.labeller.text(overlay.name), style.theme.ink, size=11, bold=True), box], gap=0.1)


def _map(group: list[Panel], style: Style, *, named: bool, scale: str) -> Box:
    """One map and its colour bar, heads side by side, under its name if there are several."""
    scaled = replace(style, top=top_of_scale(group, scale=scale))
    heads = [_panel(panel, scaled) for panel in group]
    body = heads[0] if len(heads) == 1 else flow(heads, width=max(WIDEST_ROW_OF_HEADS, heads[0].width))
    body = Column([body, ColourBar(scaled)], gap=0.24)
    if not named:
        return body
    return Column([TextLine(style.labeller.text(group[0].title), style.theme.ink, size=11, bold=True), body], gap=0.1)


def _panel(panel: Panel, style: Style) -> Box:
    """A matrix as a heatmap, a single row as shaded words."""
    captions: list[str] = [] if panel.head is None else [f"head {panel.head}"]
    if panel.steps == 1:
        captions.append(f"{panel.down}: {visible(panel.outputs[0])}")
    body: Box = ShadedWords(panel, style) if panel.steps == 1 else heatmap(panel, style)
    if not captions:
        return body
    return Column([TextLine(style.labeller.text(" · ".join(captions)), style.theme.muted, size=9), body], gap=0.09)
