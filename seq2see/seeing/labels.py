"""Symbols and names as a person should see them: blanks made visible, long names cut where they are alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

# ---------------- Symbols as a person should see them

Direction = Literal["ltr", "rtl"]

DOTTED_CIRCLE = "\u25cc"
WORD_START = "▁"
_BLANKS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "": "∅"}
_JOINERS = {"\u200c": "ZWNJ", "\u200d": "ZWJ", "\u200e": "LRM", "\u200f": "RLM", "\ufeff": "BOM", "\u00ad": "SHY"}
_LETTER_KINDS = {"LETTER", "SIGN", "VOWEL", "SYLLABLE", "CAPITAL", "SMALL", "DIGIT", "INDEPENDENT", "DEPENDENT", "MARK"}


def visible(symbol: str) -> str:
    """The symbol as a label that never looks empty; a space between the words of a label is one.

    A character model's symbols are single characters: a space would be a gap, and a vowel sign or accent
    has no letter to stand on, so the first becomes an open box and the second gets a dotted circle.

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
    """Pieces of words as a reader expects them: a word begins without a mark, what goes on inside it has one.

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
    """The way most letters of the symbols run; symbols in angle brackets (`<eos>`) are names, not text."""
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
    """The script of a character, in the word Unicode names it with: 'Devanagari', 'Arabic', 'Cjk'."""
    return unicodedata.name(character, "unknown").split()[0].title()


def is_drawn(character: str) -> bool:
    """Whether a font needs a glyph for it: joiners and direction marks shape their neighbours and leave no ink."""
    return unicodedata.category(character) not in ("Cf", "Cc")


def spelt(label: str) -> str:
    """The label spelt with the Unicode names of its letters, for a machine with no font of the script.

    >>> spelt("\\u0939\\u093f"), spelt("\\u4f60")
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


# ---------------- Names short enough to stand beside each other, cut where they are alike

CUT = "…"


def short_names(names: Sequence[str], letters: int) -> list[str]:
    """Each in at most so many letters. Where any is too long, what all begin with (a folder, the same words) goes
    first; then the middle does, and where that would make two alike, all but what is around their first difference.

    >>> short_names(["clips/of/the/first/day/a.mp4", "clips/of/the/first/day/b.mp4"], 12)
    ['…a.mp4', '…b.mp4']
    >>> short_names(["a dog runs after a ball", "two cats"], 12)
    ['a dog … ball', 'two cats']
    """
    whole = [" ".join(name.split()) for name in names]
    if all(len(name) <= letters for name in whole):
        return whole
    shared = _shared(whole)
    rest = [CUT * bool(shared) + name[shared:] for name in whole]
    made = [_middle(name, letters) for name in rest]
    alike: dict[str, set[str]] = {}
    for short, name in zip(made, rest, strict=True):
        alike.setdefault(short, set()).add(name)
    return [
        short if len(alike[short]) == 1 else _around(name, _alike(alike[short]), letters)
        for short, name in zip(made, rest, strict=True)
    ]


def _shared(names: Sequence[str]) -> int:
    """Letters that all begin with, up to the last folder or word that is whole in all of them."""
    prefix = names[0][: _alike(names)] if len(set(names)) > 1 else ""
    return max(prefix.rfind("/"), prefix.rfind("\\"), prefix.rfind(" ")) + 1


def _alike(names: Collection[str]) -> int:
    """Letters that all begin with."""
    first, last = min(names), max(names)
    differing = (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return next(differing, len(first))


def _middle(name: str, letters: int) -> str:
    if len(name) <= letters:
        return name
    end = (letters - 1) // 2
    return f"{name[: letters - 1 - end]}{CUT}{name[len(name) - end :]}"


def _around(name: str, place: int, letters: int) -> str:
    """What lies around a place."""
    room = letters - 2
    start = max(min(place - room // 3, len(name) - room), 0)
    part = name[start : start + room]
    return f"{CUT if start else ''}{part}{CUT if start + room < len(name) else ''}"
