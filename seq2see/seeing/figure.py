"""Attention as a figure: title, one section per map, heads side by side, colour bars; and how figures are saved."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.errors import UserError, nearest
from seq2see.looks import Looks
from seq2see.seeing.documents import ShadedWords, documents_of, shaded_document, without_document
from seq2see.seeing.heatmap import heatmap, is_unbroken
from seq2see.seeing.labels import BASE, Labeller, broken, drawing, set_fonts, visible
from seq2see.seeing.overlays import Overlay, overlays_of, without_overlay
from seq2see.seeing.page import page
from seq2see.seeing.panels import ALL, Panel, panels_of, top_of_scale
from seq2see.seeing.paper import LABEL, PRINT_MARGIN, Paper, paper_of
from seq2see.seeing.sheet import Box, ColourBar, Column, Style, TextLine, flow, make_figure
from seq2see.seeing.style import theme_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ---------------- Saving

PICTURES = (".png", ".svg", ".pdf")
FORMATS = (*PICTURES, ".html", ".json")
DPI, PRINT_DPI = 160, 300
"""Dots per inch of .png files: on a screen, and on paper (`width`)."""
_METADATA: dict[str, dict[str, str | None]] = {  # without times: equal figures give equal files
    ".png": {"Software": "seq2see"},
    ".svg": {"Date": None},
    ".pdf": {"Creator": "seq2see", "CreationDate": None},
}
MARKS = "\u200e\u200f"
"""Without width: they say in which direction the text around them runs."""
MAX_PIXELS = 8000  # on a side; larger figures get a lower resolution


def save(
    looks: Looks,
    path: str | Path,
    *,
    map: str | None = None,
    title: str | None = None,
    theme: str | None = None,
    direction: str = "auto",
    scale: str = "auto",
    width: str | None = None,
    font_size: float | None = None,
) -> Path:
    """Write looks to .png, .svg, .pdf, .html or .json and return the path; missing folders are created.

    map: the map to draw; all: every map; None: the maps that explain the output, without self-attention.
    theme: light or dark; None: light, and for .html the theme of the reader's system.
    direction: of the columns; auto: the direction of the input's script.
    scale: auto: the strongest colour is 1, or if no weight exceeds 0.5 the next round number above the largest; full:
    always 1, to compare figures.
    width, font_size: of a picture for print: its width with a unit (84mm, 8.4cm, 3.3in, 240pt), and the size of its
    labels in points (default with a width: 8).

    A .json file holds the weights and symbols; only `map` affects it.
    """
    path, suffix = check_suffix(path, FORMATS)
    paper = paper_of(width, font_size, suffix=suffix)
    options: dict[str, Any] = {"map": map, "title": title, "direction": direction, "scale": scale}
    if suffix == ".json":
        write_text(path, json.dumps(_select_map(looks, map).to_dict(), ensure_ascii=False) + "\n")
    elif suffix == ".html":
        write_text(path, page(looks, theme=theme, **options))
    else:
        figure = plot(looks, theme=theme or "light", spell=suffix != ".svg", paper=paper, **options)
        save_figure(figure, path, printed=paper is not None)
    return path


def _select_map(looks: Looks, name: str | None) -> Looks:
    """Looks with the selected map only."""
    if name is None:
        return looks
    if name == ALL:
        return looks
    panels_of(looks, map=name)
    return replace(looks, maps={name: looks.maps[name]}, default=name)


def save_figure(figure: Figure, path: str | Path, *, printed: bool = False) -> Path:
    """Write a figure to .png, .svg or .pdf. printed: for paper, with more dots per inch.

    SVG keeps text as text, which can be searched, copied and read aloud; the machine that shows it chooses the fonts
    and often has more scripts than a server. PDF has the fonts inside, as journals ask for.
    """
    path, suffix = check_suffix(path, PICTURES)
    with _user_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _render(figure, path, suffix, dpi=PRINT_DPI if printed else DPI)
    return path


def to_svg(figure: Figure) -> bytes:
    """A figure as SVG, to be embedded in a page."""
    file = BytesIO()
    _render(figure, file, ".svg")
    return file.getvalue()


def _render(figure: Figure, target: Path | BytesIO, suffix: str, *, dpi: int = DPI) -> None:
    set_fonts(figure, report=suffix != ".svg")  # the machine that shows an SVG chooses its fonts
    if suffix == ".pdf":
        _draw_marks(figure)
    dots = min(dpi, MAX_PIXELS / max(figure.get_size_inches()))
    metadata = _METADATA[suffix]
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "seq2see", "font.sans-serif": [BASE]}
    settings |= {"pdf.fonttype": 42}  # TrueType, which journals accept; type 3 is refused by many
    with drawing(settings):
        figure.savefig(
            target, dpi=dots, format=suffix.removeprefix("."), facecolor=figure.get_facecolor(), metadata=metadata
        )


def _draw_marks(figure: Figure) -> None:
    """Draw texts with marks of direction as paths: in a PDF matplotlib gives a mark the width of a space."""
    from matplotlib.patheffects import Normal
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if any(mark in text.get_text() for mark in MARKS):
            text.set_path_effects([Normal()])


def check_suffix(path: str | Path, formats: tuple[str, ...]) -> tuple[Path, str]:
    """The path and its suffix, which must be one of these formats."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in formats:
        allowed = ", ".join(formats)
        close = nearest(suffix, formats)
        raise UserError(f"cannot write '{path}': unknown suffix '{path.suffix}'{close}; allowed: {allowed}")
    return path, suffix


@contextmanager
def _user_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error.strerror or error}") from error


def write_text(path: Path, text: str) -> None:
    """Write text to a file; missing folders are created."""
    with _user_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# ---------------- Drawing

WIDEST_ROW_OF_HEADS = 20.0
GAP_OF_HEADS = 0.35
NARROWEST_TITLE = 4.5
MAX_LINES = 8
"""Lines of a text that is shown with the figure; HTML and JSON have all of it."""


def plot(
    looks: Looks,
    *,
    map: str | None = None,
    title: str | None = None,
    theme: str = "light",
    direction: str = "auto",
    scale: str = "auto",
    spell: bool = True,
    paper: Paper | None = None,
) -> Figure:
    """Looks as a matplotlib figure: the selected maps, each on its own scale. Options as in `save`; spell: as in
    `Labeller`."""
    groups = panels_of(looks, map=map, direction=direction)
    overlays = overlays_of(looks, groups, separate_heads=map is not None, scale=scale)
    groups = without_overlay(groups, overlays)
    room = math.inf if paper is None else paper.room - 2 * PRINT_MARGIN
    style = Style(theme_named(theme), Labeller(spell=spell), room=room)
    documents = documents_of(looks, map=map, direction=direction)
    groups = without_document(groups, documents)
    named = len(groups) + len(documents) + len({overlay.name for overlay in overlays}) > 1
    boxes: list[Box] = [_overlay(overlay, style, named=named) for overlay in overlays]
    boxes += [
        _map(group, style, named=named or group[0].inner or bool(group[0].layer), scale=scale) for group in groups
    ]
    boxes += [shaded_document(document, style, named=named, scale=scale) for document in documents]
    body = Column(boxes, gap=0.42)
    width = min(max(body.width, NARROWEST_TITLE), max(style.room, body.width))
    parts = [_wrapped(title, style, width=width, bold=True)] if title and title.strip() else []
    parts += [_wrapped(f"{name}: {text}", style, width=width, limit=MAX_LINES) for name, text in looks.beside.items()]
    figure = make_figure(Column([*parts, body], gap=0.24) if parts else body, style.theme, paper=paper)
    style.labeller.report_missing()
    return figure


def _wrapped(text: str, style: Style, *, width: float, bold: bool = False, limit: int = 0) -> Box:
    """A text wrapped to a width in inches, cut after `limit` lines."""
    printed = style.room < math.inf
    size = LABEL if printed else 12.5 if bold else 11.0

    def line_of(words: str) -> TextLine:
        return TextLine(style.labeller.text(words), style.theme.ink, size=size, bold=bold)

    lines = broken(style.labeller, text, size, width, bold=bold)
    if limit and len(lines) > limit:
        lines = [*lines[: limit - 1], f"{lines[limit - 1]} …"]
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
    heads = _heads(group, scaled)
    widest = min(WIDEST_ROW_OF_HEADS, style.room)
    body = heads[0] if len(heads) == 1 else flow(heads, width=max(widest, heads[0].width))
    body = Column([body, ColourBar(scaled)], gap=0.24)
    if not named:
        return body
    return Column([TextLine(style.labeller.text(group[0].title), style.theme.ink, size=11, bold=True), body], gap=0.1)


def _heads(group: list[Panel], style: Style) -> list[Box]:
    """The panels of a group; on paper with as many side by side as are still legible."""
    if len(group) > 1 and style.room < math.inf:
        for columns in range(min(len(group), 4), 1, -1):
            room = (style.room - GAP_OF_HEADS * (columns - 1)) / columns
            narrow = replace(style, room=room)
            if all(panel.steps > 1 and is_unbroken(panel, narrow) for panel in group):
                return [_panel(panel, narrow) for panel in group]
    return [_panel(panel, style) for panel in group]


def _panel(panel: Panel, style: Style) -> Box:
    """A matrix as a heatmap, a single row as shaded words."""
    captions: list[str] = [] if panel.head is None else [f"head {panel.head}"]
    if panel.steps == 1:
        captions.append(f"{panel.down}: {visible(panel.outputs[0])}")
    body: Box = ShadedWords(panel, style) if panel.steps == 1 else heatmap(panel, style)
    if not captions:
        return body
    return Column([TextLine(style.labeller.text(" · ".join(captions)), style.theme.muted, size=9), body], gap=0.09)
