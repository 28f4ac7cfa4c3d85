"""Figures for print: an exact width (a column of a paper) and a font size.

Figures are laid out in inches with fixed font sizes. For print they are laid out for the width that the page would have
at these fonts, and then everything (fonts, lines, distances) is scaled to the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2see.errors import UserError
from seq2see.seeing.labels import Labeller, broken

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

UNITS = {"mm": 1 / 25.4, "cm": 1 / 2.54, "in": 1.0, "pt": 1 / 72}
"""Inches of a unit."""
NARROWEST, WIDEST = 1.0, 60.0  # inches
SMALLEST, LARGEST = 4.0, 40.0  # points
LABEL = 9.5
"""Points of ordinary labels in a figure that is not made for print."""
PRINTED = 8.0
"""Points of labels where only a width is given."""
PRINT_MARGIN = 0.05  # inches; a page has its own
_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(mm|cm|in|pt)\s*")


@dataclass(frozen=True)
class Paper:
    """The width of a figure in inches (None: as it comes) and the size of its labels in points."""

    width: float | None = None
    font_size: float = PRINTED

    @property
    def scale(self) -> float:
        """By how much a figure is scaled to have labels of this size."""
        return self.font_size / LABEL

    @property
    def room(self) -> float:
        """The width for a layout before it is scaled; infinite where no width is given."""
        return math.inf if self.width is None else self.width / self.scale


def paper_of(width: str | None, font_size: float | None, *, suffix: str) -> Paper | None:
    """The paper that options ask for; None: figures as they come. suffix: of the file, for which they must mean
    something."""
    if width is None and font_size is None:
        return None
    if suffix in (".html", ".json"):
        given = "--width" if width is not None else "--font-size"
        raise UserError(f"{given}: a {suffix} file has no fixed size; allowed with .png, .svg and .pdf")
    inches = None if width is None else parse_length(width)
    size = PRINTED if font_size is None else font_size
    if not SMALLEST <= size <= LARGEST:
        raise UserError(f"--font-size {size:g}: allowed: {SMALLEST:g} to {LARGEST:g} points")
    return Paper(inches, size)


def parse_length(text: str) -> float:
    """A length as inches.

    >>> parse_length("50.8mm"), parse_length("144 pt")
    (2.0, 2.0)
    """
    match = _LENGTH.fullmatch(text)
    inches = float(match[1]) * UNITS[match[2]] if match else math.nan
    if not NARROWEST <= inches <= WIDEST:
        allowed = f"a number with a unit ({', '.join(UNITS)}), from {NARROWEST:g}in to {WIDEST:g}in, such as 84mm"
        raise UserError(f"--width: expected {allowed}; got '{text[:40]}'")
    return inches


def fit_chart(figure: Figure, paper: Paper) -> None:
    """Lay out a chart of constrained layout for a paper. Charts get narrower faster than lower; titles and the names
    of axes are wrapped."""
    if paper.width is not None:
        wide, high = figure.get_size_inches()
        figure.set_size_inches(paper.room, high * math.sqrt(paper.room / wide))
        engine: Any = figure.get_layout_engine()
        if engine is not None:
            engine.set(w_pad=PRINT_MARGIN, h_pad=1.2 * PRINT_MARGIN)
        wrap_texts(figure)
    scale_figure(figure, paper.scale)


def wrap_texts(figure: Figure) -> None:
    """Wrap titles to the figure's width, and names of axes to the width or height of their axes as laid out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    width, height = figure.get_size_inches()
    for part in (figure, *figure.subfigs):
        title = getattr(part, "_suptitle", None)
        if title is not None:
            _wrap(title, 0.94 * width)
    figure.draw_without_rendering()
    for axes in figure.axes:
        place = axes.get_position()
        for title in (axes.title, axes._left_title, axes._right_title):  # type: ignore[attr-defined]
            _wrap(title, (0.98 - place.x0) * width if axes.get_subplotspec() is None else place.width * width)
        _wrap(axes.xaxis.label, max(place.width * width, 0.8))
        _wrap(axes.yaxis.label, max(place.height * height, 0.8))


def _wrap(text: Text, width: float) -> None:
    bold = text.get_fontweight() == "bold"
    lines = broken(Labeller(spell=False), text.get_text(), float(text.get_fontsize()), width, bold=bold)
    text.set_text("\n".join(lines))


# ---------------- Scaling


def scale_figure(figure: Figure, factor: float) -> None:
    """Scale a figure with all that has a size in points: texts, lines, markers, ticks."""
    figure.set_size_inches(*(factor * figure.get_size_inches()))
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        pads = engine.get()
        engine.set(w_pad=factor * pads["w_pad"], h_pad=factor * pads["h_pad"])
    for axes in figure.axes:
        _scale_ticks(axes, factor)
    ticks = set(_tick_parts(figure.axes))
    for artist in figure.findobj():
        if artist not in ticks:
            _scale_artist(artist, factor)


def _scale_artist(artist: Any, factor: float) -> None:
    from matplotlib.collections import Collection, PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Annotation, Text

    if isinstance(artist, Text):
        artist.set_fontsize(factor * float(artist.get_fontsize()))
        if isinstance(artist, Annotation):
            across, up = artist.xyann
            artist.xyann = (factor * across, factor * up)
    elif isinstance(artist, Line2D):
        artist.set_linewidth(factor * artist.get_linewidth())
        artist.set_markersize(factor * artist.get_markersize())
        artist.set_markeredgewidth(factor * artist.get_markeredgewidth())
    elif isinstance(artist, Collection):
        artist.set_linewidth((factor * np.atleast_1d(artist.get_linewidth())).tolist())
        if isinstance(artist, PathCollection):
            artist.set_sizes(factor**2 * np.asarray(artist.get_sizes()))
    elif isinstance(artist, Patch):
        artist.set_linewidth(factor * artist.get_linewidth())


def _scale_ticks(axes: Axes, factor: float) -> None:
    """Ticks are made when a figure is drawn, from parameters."""
    for axis in (axes.xaxis, axes.yaxis):
        tick: Any = axis.get_major_ticks(1)[0]
        axis.set_tick_params(
            labelsize=factor * float(tick.label1.get_fontsize()),
            length=factor * float(tick.tick1line.get_markersize()),
            width=factor * float(tick.tick1line.get_markeredgewidth()),
            pad=factor * float(tick.get_pad()),
            grid_linewidth=factor * float(tick.gridline.get_linewidth()),
        )
        axis.labelpad *= factor


def _tick_parts(figure_axes: Iterable[Axes]) -> Iterable[Any]:
    for axes in figure_axes:
        for axis in (axes.xaxis, axes.yaxis):
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                yield from (tick.label1, tick.label2, tick.tick1line, tick.tick2line, tick.gridline)
