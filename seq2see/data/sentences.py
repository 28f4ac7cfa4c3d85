"""Where sentences end, and how a column that holds several texts is cut into them.

The rule needs no model and no language setting. Libraries that do more have not been kept up, or need a model for each
language; a table whose sentences matter can say where they end instead (newline, tab, or a mark of its own).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Some marks end a sentence even with no space after them; a full stop must have one (3.5, example.org).
_END = re.compile(r"""[。！？｡]+["'”’»）)\]」』]*|[.!?…।॥۔؟።။։]+["'”’»)\]]*(?=\s|$)|\n\s*\n""")
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
_NEXT = re.compile(r"\S|$")
_LONGEST_WORD = 40
"""Letters looked back for the word before a full stop: no abbreviation is longer, and a document may be."""

RULE = "rule"
MARKS = {RULE: "\n\n", "newline": "\n", "tab": "\t"}
"""What stands between sentences by the name a recipe gives it; any other text stands for itself."""


def split_sentences(text: str) -> Iterator[str]:
    """The sentences of a plain text, in order, by a rule of thumb.

    A full stop does not end a sentence after an abbreviation or an initial, nor where a text that has capital letters
    goes on without one. An empty line always ends one.

    >>> list(split_sentences("Dr. A. Smith paid 3.50 dollars. Then they left!"))
    ['Dr. A. Smith paid 3.50 dollars.', 'Then they left!']
    """
    text = text.strip()
    has_capitals = text != text.lower()
    start = 0
    for found in _END.finditer(text):
        if not _goes_on(text, found, has_capitals=has_capitals):
            sentence = text[start : found.end()].strip()
            start = found.end()
            if sentence:
                yield sentence
    if text[start:].strip():
        yield text[start:].strip()


def _goes_on(text: str, found: re.Match[str], *, has_capitals: bool) -> bool:
    """Whether what could be the end of a sentence is not."""
    mark = found.group()
    after = _NEXT.search(text, found.end())
    next_one = after.group() if after is not None else ""
    if mark[0] in _DOUBTFUL and has_capitals and next_one.islower():
        return True
    before = text[max(0, found.start() - _LONGEST_WORD) : found.start()]
    return mark[0] == "." and mark[:2] != ".." and _abbreviated(before, next_one)


def _abbreviated(before: str, after: str) -> bool:
    """Whether a full stop belongs to the word before it; one that stands alone, as in tokenised text, does not."""
    found = _WORD.search(before)
    if found is None or not after:
        return False
    word = found.group().lower()
    if _BEFORE_NUMBER.fullmatch(word):
        return after.isdigit()
    return bool(_ABBREVIATION.fullmatch(word) or _INITIAL.fullmatch(word))


def cut(text: str, by: str) -> list[str]:
    """The sentences of a value, by the rule or by what stands between them; empty ones do not count.

    >>> cut("good film ||| see it", "|||")
    ['good film', 'see it']
    """
    parts: Iterable[str] = split_sentences(text) if by == RULE else text.split(MARKS.get(by, by))
    return [part.strip() for part in parts if part.strip()]


def together(sentences: Iterable[str], by: str) -> str:
    """One value from several sentences, which `cut` takes apart again; a mark inside a sentence becomes a space.

    (By the rule a sentence that is given may still be cut where it holds several.)

    >>> together(["hello", "what\\nnow?"], "newline")
    'hello\\nwhat now?'
    """
    mark = MARKS.get(by, by)
    return (mark if mark.isspace() else f" {mark} ").join(sentence.replace(mark, " ") for sentence in sentences)
