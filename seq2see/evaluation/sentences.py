"""Where the first sentence of a text ends: a rule of thumb that needs no model and no language setting."""

from __future__ import annotations

import re

# Some marks end a sentence even with no space after them; a full stop must have one (3.5, example.org).
_END = re.compile(r"""[。！？｡]+["'”’»）)\]」』]*|[.!?…।॥۔؟]+["'”’»)\]]*(?=\s|$)|\n\s*\n""")
_DOUBTFUL = ".!?…"
_WORD = re.compile(r"""[^\s(\["'“‘«]+$""")
_INITIAL = re.compile(r"[^\W\d_]")
_ABBREVIATION = re.compile(
    r"mrs?|ms|messrs|drs?|profs?|st|sr|jr|rev|gen|col|sgt|capt|lt|gov|sen|rep|hon|mt"
    r"|e\.g|i\.e|cf|vs|viz|approx|ca|resp|al|eds?|inc|ltd|co|corp"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|u\.s|u\.k|u\.n|a\.m|p\.m|ph\.d"
    r"|z\.b|d\.h|bzw|usw|hr|fr"
)
_BEFORE_NUMBER = re.compile(r"nos?|nr|figs?|eqs?|secs?|tabs?|vols?|chaps?|pp?")


def first_sentence(text: str) -> str:
    """The text up to and including the end of its first sentence; all of it where no end is found.

    A full stop does not end a sentence after an abbreviation or an initial, nor where a text that has capital letters
    goes on without one.

    >>> first_sentence("Dr. A. Smith et al. paid 3.50 dollars. Then they left.")
    'Dr. A. Smith et al. paid 3.50 dollars.'
    """
    text = text.strip()
    has_capitals = text != text.lower()
    for found in _END.finditer(text):
        before, mark, after = text[: found.start()], found.group(), text[found.end() :].lstrip()
        if mark[0] in _DOUBTFUL and has_capitals and after[:1].islower():
            continue
        if mark[0] == "." and mark[:2] != ".." and _abbreviated(before, after):
            continue
        return text[: found.end()].rstrip()
    return text


def _abbreviated(before: str, after: str) -> bool:
    """Whether a full stop belongs to the word before it; one that stands alone, as in tokenised text, does not."""
    found = _WORD.search(before)
    if found is None or not after:
        return False
    word = found.group().lower()
    if _BEFORE_NUMBER.fullmatch(word):
        return after[0].isdigit()
    return bool(_ABBREVIATION.fullmatch(word) or _INITIAL.fullmatch(word))
