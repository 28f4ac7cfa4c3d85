"""Which installed font can draw a text. Shaping and the order of writing are matplotlib's work (libraqm)."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from seq2see.errors import Notice
from seq2see.seeing.symbols import is_drawn, script_of

BASE = "DejaVu Sans"  # comes with matplotlib; has Latin, Greek, Cyrillic, phonetic letters, Arabic, Hebrew, blanks
_SAME_IN_EVERY_SCRIPT = {"Latin", "Digit", "Dotted", "Combining"}
_EAST_ASIAN = {"Cjk", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Fullwidth", "Halfwidth", "Ideographic"}
_NAMED = 8
"""Characters that a notice names before it counts the rest."""
SPELT, BOXED = "they are spelt by name", "empty boxes stand for them"


class Fonts:
    """The installed fonts by family, searched in order of fitness and only as far as needed.

    files: {family: path}, the regular face of each; for tests, which give a smaller set.
    """

    def __init__(self, files: dict[str, str] | None = None):
        self._files = dict(files) if files is not None else _regular_faces()
        self._charmaps: dict[str, frozenset[int]] = {}
        self._fixed = files is not None
        self._reported: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The families that are known."""
        return list(self._files)

    def file_of(self, family: str) -> str | None:
        """The file of a family, however its name is capitalised; None where there is none."""
        known = {name.casefold(): path for name, path in self._files.items()}
        if family.casefold() not in known and not self._fixed and self._take_new_fonts():
            return self.file_of(family)
        return known.get(family.casefold())

    def families(self, text: str) -> list[str]:
        """Families to draw a text with, the first one first: a single font for the whole of it where there is one.

        A mark and its base must come from one font, or the mark is not placed on the base.
        """
        wanted = {character for character in text if is_drawn(character)}
        order = self._ranked(wanted)
        for family in order:
            if self._covers(family, wanted):
                return [family] if family == BASE else [family, BASE]
        chosen: list[str] = []
        for family in order:
            held = {character for character in wanted if self._covers(family, {character})}
            if held:
                chosen.append(family)
                wanted -= held
            if not wanted:
                break
        return [*chosen, BASE] if BASE not in chosen else chosen

    def missing(self, text: str) -> set[str]:
        """The characters of a text that no installed font can draw."""
        wanted = {character for character in text if is_drawn(character)}
        for family in self._ranked(wanted):
            wanted = {character for character in wanted if not self._covers(family, {character})}
            if not wanted:
                return set()
        if not self._fixed and self._take_new_fonts():
            return self.missing(text)
        return wanted

    def report_missing(self, characters: Iterable[str], *, drawn: str) -> None:
        """Warn, once for each script, that no font has these characters, and say what to install; drawn: what stands
        in their place."""
        scripts: dict[str, list[str]] = {}
        for character in sorted(set(characters)):
            scripts.setdefault(_kind(character), []).append(character)
        for script, missing in scripts.items():
            if script not in self._reported:
                self._reported.add(script)
                warnings.warn(_notice(script, missing, drawn), Notice, stacklevel=2)

    def forget_reported(self) -> None:
        """Let `report_missing` speak of every script again."""
        self._reported.clear()

    def _ranked(self, characters: Iterable[str]) -> list[str]:
        """All families, best first: made for the text's script (Noto Sans ahead), then the base, then the rest."""
        scripts = {script_of(character) for character in characters} - _SAME_IN_EVERY_SCRIPT
        return sorted(self._files, key=lambda family: _rank(family, scripts))

    def _covers(self, family: str, characters: set[str]) -> bool:
        if family not in self._charmaps:
            self._charmaps[family] = frozenset(FT2Font(self._files[family]).get_charmap())
        return all(ord(character) in self._charmaps[family] for character in characters)

    def _take_new_fonts(self) -> bool:
        """Add fonts installed since matplotlib wrote its list of them, which it does once per user and version."""
        known = {entry.fname for entry in font_manager.fontManager.ttflist}
        new = [path for path in font_manager.findSystemFonts() if path not in known and Path(path).suffix != ".pfb"]
        for path in new:
            try:
                font_manager.fontManager.addfont(path)
            except (OSError, RuntimeError):  # a damaged or unreadable font file is no reason not to draw
                continue
        before = len(self._files)
        self._files = _regular_faces()
        self._fixed = True  # one look is enough
        return len(self._files) > before


def _rank(family: str, scripts: set[str]) -> tuple[int, str]:
    words = family.split()
    made_for = any(script in words for script in scripts) and not {"Old", "UI", "Serif", "Mono"} & set(words)
    if made_for:
        return (0 if family.startswith("Noto Sans") else 1), family
    if family == BASE:
        return 2, family
    return (3 if family == "Noto Sans" else 4 if family.startswith("Noto Sans") else 5), family


def _regular_faces() -> dict[str, str]:
    """{family: path} of upright faces of normal weight; math and last-resort fonts hold pictures, not letters."""
    faces: dict[str, str] = {}
    for entry in font_manager.fontManager.ttflist:
        regular = entry.style == "normal" and entry.weight in (400, "normal", "regular")
        letters = not entry.name.startswith(("cm", "STIX", "Last Resort", "DejaVu Sans Display"))
        if regular and letters and entry.stretch == "normal" and Path(entry.fname).exists():
            faces.setdefault(entry.name, entry.fname)
    return faces


@lru_cache(maxsize=1)
def installed() -> Fonts:
    """The fonts of this machine."""
    return Fonts()


def _kind(character: str) -> str:
    """The script of a letter, mark or digit; 'symbols' for what belongs to none."""
    return script_of(character) if unicodedata.category(character)[0] in "LMN" else "symbols"


def _notice(script: str, missing: Sequence[str], drawn: str) -> str:
    """Which characters, what stands in their place, and what to install."""
    named = ", ".join(f"{character} (U+{ord(character):04X})" for character in missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    of = "symbols" if script == "symbols" else f"letters of the {script} script"
    package = (
        "fonts-noto-cjk" if script in _EAST_ASIAN else "fonts-symbola" if script == "symbols" else "fonts-noto-core"
    )
    return (
        f"no installed font can draw these {of}: {named}{more}; {drawn}. "
        f"Install a font that has them (Debian, Ubuntu: apt-get install {package}), "
        "or save as .html or .svg, which use the fonts of the machine that shows them"
    )
