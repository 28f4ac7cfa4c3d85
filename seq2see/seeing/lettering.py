"""Labels ready to be drawn: their text, their fonts and their size on paper."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any

from matplotlib.font_manager import FontProperties

from seq2see.seeing.fonts import BASE, BOXED, SPELT, Fonts, installed
from seq2see.seeing.symbols import spelt, visible

if TYPE_CHECKING:
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.figure import Figure

LONGEST = 28  # characters of a symbol
_DPI = 144
_DRAWING = RLock()


@dataclass(frozen=True)
class Label:
    """A text and the font families that draw it."""

    text: str
    families: tuple[str, ...]

    def style(self, size: float, *, bold: bool = False) -> dict[str, Any]:
        """Keyword arguments of matplotlib's text; a `$` in a symbol is a dollar, not mathematics."""
        weight = "bold" if bold else "normal"
        return {"fontfamily": list(self.families), "fontsize": size, "fontweight": weight, "parse_math": False}

    def measure(self, size: float, *, bold: bool = False) -> tuple[float, float]:
        """Width and height in inches at a size in points."""
        return _measure(self.text, self.families, size, bold)[:2]

    def depth(self, size: float) -> float:
        """How far the label reaches below its base line, in inches."""
        return _measure(self.text, self.families, size, False)[2]


class Lettering:
    """Turns symbols into labels.

    spell: where no font has the letters, write their names instead of empty boxes. Off for SVG, whose text is drawn by
    the machine that shows it.
    """

    def __init__(self, *, spell: bool = True, fonts: Fonts | None = None):
        self.spell = spell
        self.fonts = fonts if fonts is not None else installed()
        self._labels: dict[str, Label] = {}
        self._missing: set[str] = set()

    def symbol(self, symbol: str) -> Label:
        """A symbol of an input or output, blanks made visible, cut where it would take the whole sheet."""
        shown = visible(symbol)
        return self.text(shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…")

    def text(self, text: str) -> Label:
        """Any text: a title, the name of an axis."""
        if text not in self._labels:
            self._labels[text] = self._label(text)
        return self._labels[text]

    def _label(self, text: str) -> Label:
        missing = self.fonts.missing(text) if self.spell else set()
        if missing:
            self._missing |= missing
            text = spelt(text)
        return Label(text, (*self.fonts.families(text), "sans-serif"))

    def report_missing(self) -> None:
        """Warn of the characters that were spelt because no font has them; to be called when all labels are made."""
        self.fonts.report_missing(self._missing, drawn=SPELT)


def letter(figure: Figure, *, report: bool) -> None:
    """Give each text of a chart the fonts that its script needs, where matplotlib's usual font does not have it.

    report: warn of characters that no font has."""
    from matplotlib.text import Text

    letters, missing = Lettering(spell=False), set[str]()
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        written = text.get_text()
        if written.isascii():
            continue
        missing |= letters.fonts.missing(written)
        if (families := letters.text(written).families) != (BASE, "sans-serif"):
            text.set_fontfamily(list(families))
    if report:
        letters.fonts.report_missing(missing, drawn=BOXED)


@contextmanager
def drawing(settings: dict[Any, Any] | None = None) -> Iterator[None]:
    """Matplotlib with these rcParams, and without its warnings of missing glyphs, which `report_missing` has given.

    One thread at a time: rcParams and warning filters belong to the whole process, and threads that put them back out
    of order would leave them changed.
    """
    from matplotlib import rc_context

    with _DRAWING, rc_context(settings or {}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


@lru_cache(maxsize=1)
def _renderer() -> RendererAgg:
    from matplotlib.backends.backend_agg import RendererAgg

    return RendererAgg(16, 16, _DPI)


@lru_cache(maxsize=4096)
def _measure(text: str, families: tuple[str, ...], size: float, bold: bool) -> tuple[float, float, float]:
    properties = FontProperties(family=list(families), size=size, weight="bold" if bold else "normal")
    with drawing():
        width, height, descent = _renderer().get_text_width_height_descent(text, properties, False)
    return width / _DPI, height / _DPI, descent / _DPI
