"""Words and punctuation apart, and back together, by rules that hold across languages."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache

# Scripts written without spaces: every character is a symbol of its own, and they join without spaces.
UNSPACED = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Punctuation that leans on the symbol before it, besides closing brackets and quotes (Unicode Pe, Pf).
LEANS_BACK = frozenset(".,;:!?%…‰°·؟،؛।॥։፡።၊။៖")
# Punctuation that leans on the symbol after it, besides opening brackets and quotes (Unicode Ps, Pi).
LEANS_ON = frozenset("¿¡$£#@")
JOINER = "\u200d"
NO_SPACE = frozenset("/\\\n")
QUOTES = frozenset("\"'")
CJK_PUNCTUATION = frozenset("、。・「」『』（）！？，：；")


@cache
def _marks() -> str:
    """Combining marks as ranges of a character class: \\w leaves them out, and so would tear Devanagari apart."""
    points = [i for i in range(0x300, 0x1F000) if unicodedata.category(chr(i)).startswith("M")]
    points += [0x200C, ord(JOINER)]  # shape letters inside a word, and join emoji
    points += [*range(0x1F3FB, 0x1F400), *range(0xE0100, 0xE01F0)]  # colours of skin, variants of signs
    ranges: list[list[int]] = []
    for i in sorted(p for p in points if p <= sys.maxunicode):
        if ranges and ranges[-1][1] == i - 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@cache
def _pattern(*, ascii_only: bool) -> re.Pattern[str]:
    """An acronym (U.S.), a word (don't, well-known, 3.5), a run of one sign (...); marks go with what they stand on."""
    acronym = r"(?:[^\W\d_]\.){2,}"
    inside = r"(?:['’\-‑]|(?<=\d)[.,:](?=\d))"
    sign = r"([^\w\s])\1*"
    if ascii_only:
        return re.compile(rf"{acronym}|\w+(?:{inside}\w+)*|{sign}")
    marks = f"[{_marks()}]"
    letter = rf"(?:(?![{UNSPACED}])(?:\w|{marks}))"
    marked = rf"(?:{marks}+(?:(?<={JOINER})[^\w\s])?)*"
    return re.compile(rf"{acronym}|{letter}+(?:{inside}{letter}+)*|[{UNSPACED}]{marks}*|{sign}{marked}")


def split_words(text: str) -> list[str]:
    """Words and punctuation, in order.

    Apostrophes and hyphens inside a word stay there, and so do points and commas between digits.

    >>> split_words("Don't stop (at 3.5 km)!")
    ["Don't", 'stop', '(', 'at', '3.5', 'km', ')', '!']
    """
    return [symbol for part in text.split() for symbol in _symbols(part)]


@lru_cache(maxsize=1 << 17)
def _symbols(part: str) -> tuple[str, ...]:
    """Symbols of what stands between spaces, which most often has been seen before."""
    return tuple(match.group() for match in _pattern(ascii_only=part.isascii()).finditer(part))


def join_words(symbols: Sequence[str]) -> str:
    """Words with single spaces between, punctuation where it leans.

    Closing brackets and marks such as `. , ; : ! ? %` lean back, opening ones lean on the next word, straight quotes
    open and close in turn, slashes lean both ways, and Chinese and Japanese characters stand side by side.

    >>> join_words(["Don't", "stop", "(", "at", "3.5", "km", ")", "!"])
    "Don't stop (at 3.5 km)!"
    """
    pieces: list[str] = []
    open_quotes: set[str] = set()
    glued = True
    before = ""
    for symbol in symbols:
        back, on = _leaning(symbol, open_quotes)
        if not (glued or back or (_unspaced(before) and _unspaced(symbol))):
            pieces.append(" ")
        pieces.append(symbol)
        glued, before = on, symbol
    return "".join(pieces)


def _leaning(symbol: str, open_quotes: set[str]) -> tuple[bool, bool]:
    """Whether a symbol leans on the one before it, and on the one after it."""
    if not symbol or symbol[0].isalnum():
        return False, False
    sign = symbol[0]
    if sign in QUOTES and len(symbol) == 1:
        closing = sign in open_quotes
        (open_quotes.discard if closing else open_quotes.add)(sign)
        return closing, not closing
    if sign in NO_SPACE:
        return True, True
    if len(set(symbol)) > 1:
        return False, False
    category = unicodedata.category(sign)
    return (
        sign in LEANS_BACK or category in ("Pe", "Pf") or sign in CJK_PUNCTUATION,
        (sign in LEANS_ON and len(symbol) == 1) or category in ("Ps", "Pi") or sign in CJK_PUNCTUATION,
    )


@cache
def _unspaced_pattern() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


def _unspaced(symbol: str) -> bool:
    return bool(symbol) and not symbol.isascii() and _unspaced_pattern().match(symbol) is not None
