"""Blocks of plain lines, whose words are found and numbered as arrays, without a Python object for each.

Most lines of most tables are plain: as many fields as there are columns, none empty, with single spaces between words.
Where all lines of a block are, the places of its spaces and delimiters tell everything about it. A word of up to 16
bytes is two integers, which are looked up in a hash table of NumPy arrays; longer words, and those that are met for
the first time, are looked up in a dictionary. Blocks with anything else in them are read as in data/blocks.py, with the
same results.
"""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

from seq2see.data.formats import Layout
from seq2see.data.tokens import Unit

Places = NDArray[np.int64]
Keys = tuple[NDArray[np.uint64], NDArray[np.uint64]]

_SPACE, _NEWLINE = ord(" "), ord("\n")
_WIDE_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""Spaces outside ASCII, at which `str.split` splits."""
_KEY_BYTES = 16
_MASKS = np.array(
    [[(1 << 8 * min(size, 8)) - 1, (1 << 8 * max(size - 8, 0)) - 1] for size in range(_KEY_BYTES + 1)], dtype=np.uint64
).T.copy()
"""By the length of a word, which bits of its two integers are its own: (2, lengths)"""
_MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
"""Odd numbers that spread the bits of a key over its product."""
_SLOTS = 1 << 12


class PlainBlock:
    """A block of plain lines.

    rows: their number; fields: by column of the recipe the value of each row, in bytes.
    """

    def __init__(self, content: bytes, layout: Layout, marks: Places, ends: Places):
        """marks: where each word ends; ends: (rows, fields) which of the marks ends each field."""
        self.rows, width = ends.shape
        self._content, self._marks, self._ends = content, marks, ends
        self._places: list[int] = layout.columns if layout.kind == "fields" else [0 for _ in layout.columns]
        padded = content + bytes(2 * _KEY_BYTES - len(content) % 8)
        self._words = np.frombuffer(padded, dtype="<u8")
        mark = layout.delimiter.encode() if layout.kind == "fields" else b"\n"
        fields = content.replace(b"\n", mark).split(mark)
        self.fields = [fields[place:-1:width] for place in self._places]

    @classmethod
    def of(cls, content: bytes, layout: Layout, most: int) -> PlainBlock | None:
        """None where a line is not plain. most: characters of a value."""
        width = layout.width if layout.kind == "fields" else 1
        if layout.kind == "objects" or (layout.kind == "fields" and width < 2) or len(content) > most:
            return None
        delimiter = ord(layout.delimiter) if layout.kind == "fields" else _NEWLINE
        if delimiter > 127 or (layout.quoted and b'"' in content) or not _plain_characters(content):
            return None
        if not content.endswith(b"\n"):
            content += b"\n"
        found = np.frombuffer(content, dtype=np.uint8)
        marks = np.flatnonzero((found <= _SPACE) | (found == delimiter))
        if np.diff(marks, prepend=-1).min() < 2:  # two in a row, or one at the start
            return None
        kinds = found[marks]
        lines = kinds == _NEWLINE
        ended = lines | (kinds == delimiter)
        ends = np.flatnonzero(ended)
        if not (ended | (kinds == _SPACE)).all() or len(ends) % width:
            return None
        last = np.flatnonzero(lines[ends])
        if not np.array_equal(last, np.arange(width - 1, len(ends), width)):
            return None
        return cls(content, layout, marks, ends.reshape(-1, width))

    def parts(self, column: int, unit: Unit) -> tuple[Places, Places, NDArray[np.int32]]:
        """(where each part of a column begins, where it ends; how many each row has)."""
        place, width = self._places[column], self._ends.shape[1]
        ends = self._ends.ravel()
        if unit == "value":
            starts = np.append(0, self._marks[ends] + 1)[place:-1:width]
            return starts, self._marks[self._ends[:, place]], np.ones(self.rows, dtype=np.int32)
        sizes = np.diff(ends, prepend=-1)
        starts, stops = np.append(0, self._marks[:-1] + 1), self._marks
        if width > 1:
            chosen = np.repeat(np.arange(len(ends)) % width == place, sizes)
            starts, stops = starts[chosen], stops[chosen]
        return starts, stops, sizes[place::width].astype(np.int32)

    def keys(self, starts: Places, stops: Places) -> Keys:
        """The first 16 bytes of parts as two integers each, 0 beyond their ends."""
        sizes = np.minimum(stops - starts, _KEY_BYTES)
        first = self._integers(starts) & _MASKS[0][sizes]
        second = np.zeros(len(starts), dtype=np.uint64)
        long = np.flatnonzero(sizes > 8)
        second[long] = self._integers(starts[long] + 8) & _MASKS[1][sizes[long]]
        return first, second

    def _integers(self, starts: Places) -> NDArray[np.uint64]:
        """Eight bytes from each of these places on."""
        words, shifts = starts >> 3, ((starts & 7) << 3).astype(np.uint64)
        low = self._words[words] >> shifts
        high = self._words[words + 1] << (np.uint64(63) - shifts) << np.uint64(1)
        return np.asarray(low | high)

    def texts(self, starts: Places, stops: Places) -> list[str]:
        content = self._content
        return [content[start:stop].decode() for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


def _plain_characters(content: bytes) -> bool:
    """Whether a block is text whose only spaces are those of ASCII, in Unicode's form NFC."""
    if content.isascii():
        return True
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return False
    return not any(space in text for space in _WIDE_SPACES) and unicodedata.is_normalized("NFC", text)


class NumberTable:
    """The numbers of short parts: a hash table with open addressing, whose lookups are operations on arrays.

    numbers: a dictionary that numbers parts, and gives new ones the next number; all parts are in it.
    """

    def __init__(self, numbers: dict[str, int]):
        self._numbers = numbers
        self.clear()

    def clear(self) -> None:
        """Forget all parts, as the dictionary has."""
        self._keys = np.zeros((2, _SLOTS), dtype=np.uint64)  # by number; no part has a first integer of 0
        self._slots = np.full(2 * _SLOTS, -1, dtype=np.int32)  # by hash, the numbers

    def number(self, block: PlainBlock, starts: Places, stops: Places) -> NDArray[np.int32]:
        """The numbers of parts of a block; new ones are numbered in the order in which they stand."""
        keys = block.keys(starts, stops)
        found = self._find(keys)
        short = stops - starts <= _KEY_BYTES
        asked = np.flatnonzero((found < 0) | ~short)
        if len(asked):
            texts = block.texts(starts[asked], stops[asked])
            found[asked] = np.fromiter(map(self._numbers.__getitem__, texts), np.int32, len(asked))
            new = asked[short[asked]]
            self._add(found[new], (keys[0][new], keys[1][new]))
        return found

    def _hashes(self, keys: Keys) -> Places:
        bits = len(self._slots).bit_length() - 1
        return (((keys[0] ^ keys[1] * _MIX[1]) * _MIX[0]) >> np.uint64(64 - bits)).astype(np.int64)

    def _find(self, keys: Keys) -> NDArray[np.int32]:
        """The numbers of keys, -1 for those that are not here."""
        slots = self._hashes(keys)
        found = self._slots[slots]
        others = np.flatnonzero(self._differ(found, keys))
        while len(others):
            slots[others] = (slots[others] + 1) & (len(self._slots) - 1)
            found[others] = self._slots[slots[others]]
            others = others[self._differ(found[others], (keys[0][others], keys[1][others]))]
        return found

    def _differ(self, numbers: NDArray[np.int32], keys: Keys) -> NDArray[np.bool_]:
        """Where numbers (not -1) are of other keys."""
        same = (self._keys[0][numbers] == keys[0]) & (self._keys[1][numbers] == keys[1])
        return np.asarray((numbers >= 0) & ~same)

    def _add(self, numbers: NDArray[np.int32], keys: Keys) -> None:
        """Add parts that are not here, each once or several times."""
        numbers, first = np.unique(numbers, return_index=True)
        if len(self._numbers) > self._keys.shape[1]:
            self._grow()
        self._keys[:, numbers] = keys[0][first], keys[1][first]
        self._insert(numbers)

    def _grow(self) -> None:
        size = 2 << (len(self._numbers) - 1).bit_length()
        self._keys = np.pad(self._keys, ((0, 0), (0, size - self._keys.shape[1])))
        self._slots = np.full(2 * size, -1, dtype=np.int32)
        self._insert(np.flatnonzero(self._keys[0]).astype(np.int32))

    def _insert(self, numbers: NDArray[np.int32]) -> None:
        """Give each of these numbers the first free slot from that of its hash on."""
        slots = self._hashes((self._keys[0][numbers], self._keys[1][numbers]))
        while len(numbers):
            free = self._slots[slots] < 0
            self._slots[slots[free]] = numbers[free]  # of several with one slot, the last has it
            left = self._slots[slots] != numbers
            numbers, slots = numbers[left], (slots[left] + 1) & (len(self._slots) - 1)
