"""Sentence splitting by rule, and columns that hold several texts.

The rule needs no model and no language setting; libraries that do more are unmaintained or need a model for each
language. A table can instead mark its sentences (newline, tab, or a separator of its own).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

# Some marks end a sentence even with no space after them; a full stop must have one (3.5, example.org).
_END = re.compile(r"""[。！？｡]+["'”’»）)\]」』]*|[.!?…।॥۔؟።။։]+["'”’»)\]]*(?=\s|$)|\n\s*\n""")
_AMBIGUOUS = ".!?…"
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
"""Characters before a full stop that are searched for an abbreviation."""

RULE = "rule"
MARKS = {RULE: "\n\n", "newline": "\n", "tab": "\t"}
"""Separators of sentences by their name in a recipe; any other text is itself the separator."""


def split_sentences(text: str) -> Iterator[str]:
    """The sentences of a text, in order, by rule.

    A full stop does not end a sentence after an abbreviation or an initial, nor before a lower-case word in a text with
    capital letters. An empty line always ends one.

    >>> list(split_sentences("Dr. A. Smith paid 3.50 dollars. Then they left!"))
    ['Dr. A. Smith paid 3.50 dollars.', 'Then they left!']
    """
    text = text.strip()
    has_capitals = text != text.lower()
    start = 0
    for match in _END.finditer(text):
        if not _continues(text, match, has_capitals=has_capitals):
            sentence = text[start : match.end()].strip()
            start = match.end()
            if sentence:
                yield sentence
    if text[start:].strip():
        yield text[start:].strip()


def _continues(text: str, match: re.Match[str], *, has_capitals: bool) -> bool:
    """Whether the sentence continues after a possible end."""
    mark = match.group()
    after = _NEXT.search(text, match.end())
    following = after.group() if after is not None else ""
    if mark[0] in _AMBIGUOUS and has_capitals and following.islower():
        return True
    before = text[max(0, match.start() - _LONGEST_WORD) : match.start()]
    return mark[0] == "." and mark[:2] != ".." and _is_abbreviation(before, following)


def _is_abbreviation(before: str, after: str) -> bool:
    """Whether a full stop belongs to the word before it; a separate one, as in tokenised text, does not."""
    match = _WORD.search(before)
    if match is None or not after:
        return False
    word = match.group().lower()
    if _BEFORE_NUMBER.fullmatch(word):
        return after.isdigit()
    return bool(_ABBREVIATION.fullmatch(word) or _INITIAL.fullmatch(word))


def split_texts(text: str, by: str) -> list[str]:
    """The sentences of a value, by rule or separator; empty ones are dropped.

    >>> split_texts("good film ||| see it", "|||")
    ['good film', 'see it']
    """
    parts: Iterable[str] = split_sentences(text) if by == RULE else text.split(MARKS.get(by, by))
    return [part.strip() for part in parts if part.strip()]


def shortened(sentences: Sequence[list[str]], *, most: int, keep: str, longest: int) -> list[list[str]]:
    """The sentences that have symbols, cut: at most so many, the first or the last ones (`keep`), each of at most
    `longest` symbols; 0: no limit.

    >>> shortened([["a", "b"], [], ["c", "d"]], most=1, keep="last", longest=1)
    [['c']]
    """
    rows = [row for row in sentences if row]
    if most:
        rows = rows[-most:] if keep == "last" else rows[:most]
    return [row[:longest] for row in rows] if longest else rows


def join_texts(sentences: Iterable[str], by: str) -> str:
    """Join sentences to one value, which `cut` splits again; a separator inside a sentence becomes a space.

    (By rule, a sentence may still be split if it contains several.)

    >>> join_texts(["hello", "what\\nnow?"], "newline")
    'hello\\nwhat now?'
    """
    mark = MARKS.get(by, by)
    return (mark if mark.isspace() else f" {mark} ").join(sentence.replace(mark, " ") for sentence in sentences)
