"""Labels: the visible text of symbols, their reading direction, and installed fonts that can draw them in any script.

Shaping and bidirectional order are done by matplotlib (libraqm), which is imported only when something is drawn.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

from seq2see.errors import Notice

if TYPE_CHECKING:
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.figure import Figure

# ---------------- Text

Direction = Literal["ltr", "rtl"]

DOTTED_CIRCLE = "\u25cc"
WORD_START = "▁"
_BLANKS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "": "∅"}
_JOINERS = {"\u200c": "ZWNJ", "\u200d": "ZWJ", "\u200e": "LRM", "\u200f": "RLM", "\ufeff": "BOM", "\u00ad": "SHY"}
_LETTER_KINDS = {"LETTER", "SIGN", "VOWEL", "SYLLABLE", "CAPITAL", "SMALL", "DIGIT", "INDEPENDENT", "DEPENDENT", "MARK"}


def visible(symbol: str) -> str:
    """The symbol as a label that never looks empty.

    A character model's symbols are single characters: a space becomes an open box, and a combining mark gets a dotted
    circle to stand on. Spaces between the words of a label stay spaces.

    >>> visible(" "), visible("a\\n"), visible("\\u093f") == "\\u25cc\\u093f", visible(" New York")
    ('␣', 'a⏎', True, '␣New York')
    """
    if symbol in _BLANKS:
        return _BLANKS[symbol]
    if symbol in _JOINERS:
        return _JOINERS[symbol]
    based = DOTTED_CIRCLE + symbol if unicodedata.category(symbol[0]).startswith("M") else symbol
    first, last = len(based) - len(based.lstrip()), len(based.rstrip())
    return "".join(
        character if character == " " and first < place < last else _visible_character(character)
        for place, character in enumerate(based)
    )


def _visible_character(character: str) -> str:
    if character in _BLANKS:
        return _BLANKS[character]
    category = unicodedata.category(character)
    if category == "Cc":
        code = ord(character)
        return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"U+{code:04X}"
    if category == "Zs":
        return "␣"
    if category in ("Zl", "Zp"):
        return "⏎"
    return f"U+{ord(character):04X}" if category in ("Cs", "Co", "Cn") else character


def as_words(symbols: Sequence[str]) -> list[str]:
    """Subword pieces for a reader: pieces that continue a word get a dot, word starts lose their marker.

    >>> as_words(["▁Kopf", "hörer", ".", "<eos>"])
    ['Kopf', '·hörer', '.', '<eos>']
    """
    if not any(symbol.startswith(WORD_START) for symbol in symbols):
        return list(symbols)
    return [_piece(symbol) for symbol in symbols]


def _piece(symbol: str) -> str:
    if symbol.startswith(WORD_START):
        return symbol.removeprefix(WORD_START) or " "
    return f"·{symbol}" if symbol[:1].isalnum() else symbol


def direction_of(symbols: Iterable[str]) -> Direction:
    """The direction of most letters; symbols in angle brackets (`<eos>`) are names, not text."""
    leftward = rightward = 0
    for symbol in symbols:
        if symbol.startswith("<") and symbol.endswith(">"):
            continue
        for character in symbol:
            kind = unicodedata.bidirectional(character)
            leftward += kind in ("R", "AL")
            rightward += kind == "L"
    return "rtl" if leftward > rightward else "ltr"


def script_of(character: str) -> str:
    """The script of a character by its Unicode name: 'Devanagari', 'Arabic', 'Cjk'."""
    return unicodedata.name(character, "unknown").split()[0].title()


def is_drawn(character: str) -> bool:
    """Whether a character needs a glyph: joiners and direction marks only shape their neighbours."""
    return unicodedata.category(character) not in ("Cf", "Cc")


def spell_out(label: str) -> str:
    """The label written with the Unicode names of its letters, for machines without a font for the script.

    >>> spell_out("\\u0939\\u093f"), spell_out("\\u4f60")
    ('ha·i', 'U+4F60')
    """
    return "·".join(
        _letter_name(character) for character in label if character != DOTTED_CIRCLE and is_drawn(character)
    )


def _letter_name(character: str) -> str:
    words = unicodedata.name(character, "").split()
    if ord(character) < 0x250 or not words:
        return character if words else f"U+{ord(character):04X}"
    tail = [word for word in words[1:] if word not in _LETTER_KINDS]
    if not tail or "-" in words[-1] or len(words) == 1:
        return f"U+{ord(character):04X}"
    return " ".join(tail).lower()


CUT = "…"


def short_names(names: Sequence[str], length: int) -> list[str]:
    """Names cut to a length so that they stay distinct.

    If any is too long, the common prefix goes first (a folder, the same words), then the middle; names that would
    become equal keep the part around their first difference.

    >>> short_names(["clips/of/the/first/day/a.mp4", "clips/of/the/first/day/b.mp4"], 12)
    ['…a.mp4', '…b.mp4']
    >>> short_names(["a dog runs after a ball", "two cats"], 12)
    ['a dog … ball', 'two cats']
    """
    whole = [" ".join(name.split()) for name in names]
    if all(len(name) <= length for name in whole):
        return whole
    shared = _common_prefix(whole)
    rest = [CUT * bool(shared) + name[shared:] for name in whole]
    shortened = [_middle(name, length) for name in rest]
    alike: dict[str, set[str]] = {}
    for short, name in zip(shortened, rest, strict=True):
        alike.setdefault(short, set()).add(name)
    return [
        short if len(alike[short]) == 1 else _excerpt(name, _common_length(alike[short]), length)
        for short, name in zip(shortened, rest, strict=True)
    ]


def _common_prefix(names: Sequence[str]) -> int:
    """The length of the common prefix, up to the last complete folder or word."""
    prefix = names[0][: _common_length(names)] if len(set(names)) > 1 else ""
    return max(prefix.rfind("/"), prefix.rfind("\\"), prefix.rfind(" ")) + 1


def _common_length(names: Collection[str]) -> int:
    """The number of leading characters that all names share."""
    first, last = min(names), max(names)
    differing = (place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return next(differing, len(first))


def _middle(name: str, length: int) -> str:
    if len(name) <= length:
        return name
    end = (length - 1) // 2
    return f"{name[: length - 1 - end]}{CUT}{name[len(name) - end :]}"


def _excerpt(name: str, place: int, length: int) -> str:
    """The part of a name around a position."""
    room = length - 2
    start = max(min(place - room // 3, len(name) - room), 0)
    part = name[start : start + room]
    return f"{CUT if start else ''}{part}{CUT if start + room < len(name) else ''}"


# ---------------- Fonts

BASE = "DejaVu Sans"  # part of matplotlib; has Latin, Greek, Cyrillic, phonetic letters, Arabic, Hebrew, blanks
_SAME_IN_EVERY_SCRIPT = {"Latin", "Digit", "Dotted", "Combining"}
_EAST_ASIAN = {"Cjk", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Fullwidth", "Halfwidth", "Ideographic"}
_MAX_NAMED = 8
"""Characters listed in a warning before the rest is counted."""
SPELT, BOXED = "they are replaced by their names", "they are drawn as empty boxes"


class Fonts:
    """The installed fonts by family, searched in order of fitness and only as far as needed.

    files: {family: path}, the regular face of each family; tests pass a smaller set.
    """

    def __init__(self, files: dict[str, str] | None = None):
        self._files = dict(files) if files is not None else _regular_faces()
        self._charmaps: dict[str, frozenset[int]] = {}
        self._fixed = files is not None
        self._reported: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The known families."""
        return list(self._files)

    def file_of(self, family: str) -> str | None:
        """The file of a family, in any capitalisation; None if it is not installed."""
        known = {name.casefold(): path for name, path in self._files.items()}
        if family.casefold() not in known and not self._fixed and self._take_new_fonts():
            return self.file_of(family)
        return known.get(family.casefold())

    def families(self, text: str) -> list[str]:
        """Families to draw a text with, in order of preference: a single font for all of it if there is one.

        A mark and its base must come from one font, or the mark is misplaced.
        """
        needed = {character for character in text if is_drawn(character)}
        order = self._ranked(needed)
        for family in order:
            if self._covers(family, needed):
                return [family] if family == BASE else [family, BASE]
        chosen: list[str] = []
        for family in order:
            covered = {character for character in needed if self._covers(family, {character})}
            if covered:
                chosen.append(family)
                needed -= covered
            if not needed:
                break
        return [*chosen, BASE] if BASE not in chosen else chosen

    def missing(self, text: str) -> set[str]:
        """The characters of a text that no installed font can draw."""
        needed = {character for character in text if is_drawn(character)}
        for family in self._ranked(needed):
            needed = {character for character in needed if not self._covers(family, {character})}
            if not needed:
                return set()
        if not self._fixed and self._take_new_fonts():
            return self.missing(text)
        return needed

    def report_missing(self, characters: Iterable[str], *, drawn: str) -> None:
        """Warn once for each script that no font has these characters, and say what to install.

        drawn: what is drawn instead.
        """
        scripts: dict[str, list[str]] = {}
        for character in sorted(set(characters)):
            scripts.setdefault(_script_group(character), []).append(character)
        for script, missing in scripts.items():
            if script not in self._reported:
                self._reported.add(script)
                warnings.warn(_message(script, missing, drawn), Notice, stacklevel=2)

    def forget_reported(self) -> None:
        """Let `report_missing` warn of every script again."""
        self._reported.clear()

    def _ranked(self, characters: Iterable[str]) -> list[str]:
        """All families, best first: those for the text's script (Noto Sans first), then the base font, then the
        rest."""
        scripts = {script_of(character) for character in characters} - _SAME_IN_EVERY_SCRIPT
        return sorted(self._files, key=lambda family: _rank(family, scripts))

    def _covers(self, family: str, characters: set[str]) -> bool:
        if family not in self._charmaps:
            from matplotlib.ft2font import FT2Font

            self._charmaps[family] = frozenset(FT2Font(self._files[family]).get_charmap())
        return all(ord(character) in self._charmaps[family] for character in characters)

    def _take_new_fonts(self) -> bool:
        """Add fonts installed since matplotlib cached its list, which it does once per user and version."""
        from matplotlib import font_manager

        known = {entry.fname for entry in font_manager.fontManager.ttflist}
        new = [path for path in font_manager.findSystemFonts() if path not in known and Path(path).suffix != ".pfb"]
        for path in new:
            try:
                font_manager.fontManager.addfont(path)
            except (OSError, RuntimeError):  # a damaged or unreadable font file should not prevent drawing
                continue
        before = len(self._files)
        self._files = _regular_faces()
        self._fixed = True  # search once
        return len(self._files) > before


def _rank(family: str, scripts: set[str]) -> tuple[int, str]:
    words = family.split()
    matching = any(script in words for script in scripts) and not {"Old", "UI", "Serif", "Mono"} & set(words)
    if matching:
        return (0 if family.startswith("Noto Sans") else 1), family
    if family == BASE:
        return 2, family
    return (3 if family == "Noto Sans" else 4 if family.startswith("Noto Sans") else 5), family


def _regular_faces() -> dict[str, str]:
    """{family: path} of upright faces of normal weight, without mathematical and last-resort fonts."""
    from matplotlib import font_manager

    faces: dict[str, str] = {}
    for entry in font_manager.fontManager.ttflist:
        regular = entry.style == "normal" and entry.weight in (400, "normal", "regular")
        textual = not entry.name.startswith(("cm", "STIX", "Last Resort", "DejaVu Sans Display"))
        if regular and textual and entry.stretch == "normal" and Path(entry.fname).exists():
            faces.setdefault(entry.name, entry.fname)
    return faces


@lru_cache(maxsize=1)
def installed() -> Fonts:
    """The fonts of this machine."""
    return Fonts()


def _script_group(character: str) -> str:
    """The script of a letter, mark or digit; "symbols" for everything else."""
    return script_of(character) if unicodedata.category(character)[0] in "LMN" else "symbols"


def _message(script: str, missing: Sequence[str], drawn: str) -> str:
    """The warning: which characters are missing, what is drawn instead, and what to install."""
    named = ", ".join(f"{character} (U+{ord(character):04X})" for character in missing[:_MAX_NAMED])
    more = f" and {len(missing) - _MAX_NAMED} more" if len(missing) > _MAX_NAMED else ""
    kind = "symbols" if script == "symbols" else f"letters of the {script} script"
    package = (
        "fonts-noto-cjk" if script in _EAST_ASIAN else "fonts-symbola" if script == "symbols" else "fonts-noto-core"
    )
    return (
        f"no installed font can draw these {kind}: {named}{more}; {drawn}. "
        f"Install a font that has them (Debian, Ubuntu: apt-get install {package}), "
        "or save as .html or .svg, which use the fonts of the machine that shows them"
    )


# ---------------- Labels that are measured before they are drawn

LONGEST = 28  # characters of a symbol
_DPI = 144
_DRAWING = RLock()


@dataclass(frozen=True)
class Label:
    """A text and the font families that draw it."""

    text: str
    families: tuple[str, ...]

    def style(self, size: float, *, bold: bool = False) -> dict[str, Any]:
        """Keyword arguments of matplotlib's text; `$` is a dollar sign, not mathematics."""
        weight = "bold" if bold else "normal"
        return {"fontfamily": list(self.families), "fontsize": size, "fontweight": weight, "parse_math": False}

    def measure(self, size: float, *, bold: bool = False) -> tuple[float, float]:
        """Width and height in inches at a font size in points."""
        return _measure(self.text, self.families, size, bold)[:2]

    def depth(self, size: float) -> float:
        """How far the label reaches below its baseline, in inches."""
        return _measure(self.text, self.families, size, False)[2]


class Labeller:
    """Makes labels from symbols.

    spell: write the Unicode names of letters that no font has, instead of empty boxes. Off for SVG, whose text is drawn
    by the machine that shows it.
    """

    def __init__(self, *, spell: bool = True, fonts: Fonts | None = None):
        self.spell = spell
        self.fonts = fonts if fonts is not None else installed()
        self._labels: dict[str, Label] = {}
        self._missing: set[str] = set()

    def symbol(self, symbol: str) -> Label:
        """A symbol of an input or output: whitespace made visible, long symbols cut."""
        label = visible(symbol)
        return self.text(label if len(label) <= LONGEST else label[: LONGEST - 1] + "…")

    def text(self, text: str) -> Label:
        """Any text, such as a title or the name of an axis."""
        if text not in self._labels:
            self._labels[text] = self._label(text)
        return self._labels[text]

    def _label(self, text: str) -> Label:
        missing = self.fonts.missing(text) if self.spell else set()
        if missing:
            self._missing |= missing
            text = spell_out(text)
        return Label(text, (*self.fonts.families(text), "sans-serif"))

    def report_missing(self) -> None:
        """Warn of the characters that no font has; call it when all labels are made."""
        self.fonts.report_missing(self._missing, drawn=SPELT)


def shorten(labeller: Labeller, text: str, size: float, width: float, *, bold: bool = False) -> Label:
    """A text cut to a width in inches."""
    label = labeller.text(text)
    while len(text) > 1 and label.measure(size, bold=bold)[0] > width:
        text = text[:-1]
        label = labeller.text(f"{text}…")
    return label


def broken(labeller: Labeller, text: str, size: float, width: float, *, bold: bool = False) -> list[str]:
    """A text in lines of at most a width in inches; a word that is longer has a line of its own."""
    lines = list[str]()
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and labeller.text(longer).measure(size, bold=bold)[0] <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def set_fonts(figure: Figure, *, report: bool) -> None:
    """Set the fonts of each text in a chart whose script matplotlib's default font does not have.

    report: warn of characters that no font has.
    """
    from matplotlib.text import Text

    labeller, missing = Labeller(spell=False), set[str]()
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        content = text.get_text()
        if content.isascii():
            continue
        missing |= labeller.fonts.missing(content)
        if (families := labeller.text(content).families) != (BASE, "sans-serif"):
            text.set_fontfamily(list(families))
    if report:
        labeller.fonts.report_missing(missing, drawn=BOXED)


@contextmanager
def drawing(settings: dict[Any, Any] | None = None) -> Iterator[None]:
    """Set matplotlib's rcParams and silence its warnings of missing glyphs, which `report_missing` replaces.

    One thread at a time: rcParams and warning filters belong to the whole process.
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
    from matplotlib.font_manager import FontProperties

    properties = FontProperties(family=list(families), size=size, weight="bold" if bold else "normal")
    with drawing():
        width, height, descent = _renderer().get_text_width_height_descent(text, properties, False)
    return width / _DPI, height / _DPI, descent / _DPI
