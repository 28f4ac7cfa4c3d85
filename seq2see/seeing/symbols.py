"""Symbols as a person should see them: blanks made visible, marks given a base, the way the writing runs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

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
