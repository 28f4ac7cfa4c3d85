"""Long lines cut where a word ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def pieces(line: str, most: int) -> Iterator[str]:
    """Parts of a line of at most so many characters each, blanks between words made one; 0: the line as it is.

    A longer word stands alone, whole: letters of many scripts change their shape where a word is cut.

    >>> list(pieces("one  two three incomprehensible", 9))
    ['one two', 'three', 'incomprehensible']
    """
    words = line.split()
    if not most:
        yield from [" ".join(words)] if words else []
        return
    part = ""
    for word in words:
        longer = f"{part} {word}" if part else word
        if part and len(longer) > most:
            yield part
            longer = word
        part = longer
    if part:
        yield part


def cut(lines: Iterable[str], most: int) -> list[str]:
    """The parts of all lines, each text once, in the order in which they first come."""
    return list(dict.fromkeys(piece for line in lines for piece in pieces(line, most)))
