"""Text of labels: visible whitespace, reading direction, scripts, shortened names."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

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
