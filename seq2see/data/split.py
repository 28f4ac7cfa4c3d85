"""Train/dev split by hashing the row alone, so that it does not depend on order or machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

from seq2see.data.columns import as_written
from seq2see.errors import UserError, counted

Values = TypeVar("Values", bound=Mapping[str, str])
_RANGE = 1 << 64
_Rows = dict[int, list[tuple[int, Mapping[str, str]]]]
"""Rows with their place in the table, by the hash of their inputs."""


@dataclass(frozen=True)
class Split:
    """A row is for dev if the hash of its inputs is below a threshold, so equal inputs stay on one side.

    names: the inputs that are hashed; rows, dev_rows: their numbers; held: the dev rows.
    """

    threshold: int
    names: tuple[str, ...]
    rows: int
    dev_rows: int
    held: Sequence[Mapping[str, str]] = field(default=(), repr=False, compare=False)

    def is_dev(self, row: Mapping[str, str]) -> bool:
        return row_hash(row, self.names) < self.threshold

    def train(self, rows: Iterable[Values]) -> Iterator[Values]:
        return (row for row in rows if not self.is_dev(row))

    def dev(self, rows: Iterable[Values]) -> Iterator[Values]:
        return (row for row in rows if self.is_dev(row))

    def check(self) -> None:
        """Refuse a split without dev rows."""
        if self.dev_rows:
            return
        if self.rows == 1:
            raise UserError("the table has one row, and none is left to set aside for dev; give more rows, or --dev")
        raise UserError(
            f"no row of {self.rows:,} could be set aside for dev: the inputs are all equal, or data.dev_share is 0; "
            "give --dev"
        )

    @property
    def note(self) -> str:
        if not self.dev_rows:
            return f"none of {counted(self.rows, 'row')} set aside for dev"
        return f"{self.dev_rows:,} of {counted(self.rows, 'row')} set aside for dev"


def row_hash(row: Mapping[str, str], names: Sequence[str]) -> int:
    """A hash below 2 ** 64 of the values alone, the same on every machine, in every folder and run."""
    digest = blake2b(digest_size=8)
    for name in names:
        digest.update(prefixed(as_written(row, name).encode("utf-8", "surrogatepass")))
    return int.from_bytes(digest.digest(), "little")


def prefixed(value: bytes) -> bytes:
    """A value as it is hashed: its length before it, so that no two rows of several values are the same bytes."""
    return len(value).to_bytes(8, "little") + value


class HoldOut:
    """Finds the threshold that holds out about `share` of the rows and at most `most`, in one streaming pass.

    names: the inputs, or the output if there are none. The rows with the lowest hashes are held out: at least one if
    there are two different inputs. Not many more than `most` rows are held in memory.
    limit: rows with hashes from here on are not held out.
    """

    def __init__(self, *, names: Sequence[str], share: float, most: int):
        self._names, self._share, self._most = tuple(names), share, most
        self.limit = int(share * _RANGE)
        self._held_out: _Rows = {}
        self._held = self._total = 0
        self._lowest, self._highest = _RANGE, -1
        self._lowest_rows: list[Mapping[str, str]] = []

    def add(self, row: Mapping[str, str]) -> None:
        number = row_hash(row, self._names)
        self.add_rows(1, number, number, [(0, number, row)])

    def add_rows(self, rows: int, lowest: int, highest: int, low: Iterable[tuple[int, int, Mapping[str, str]]]) -> None:
        """Add several rows, of which only these hashes are told. low: (place among them, hash, row) of those with the
        lowest hash and those below the limit."""
        self._highest = max(self._highest, highest)
        if rows and lowest < self._lowest:
            self._lowest, self._lowest_rows = lowest, []
        for place, number, row in low:
            if number == self._lowest:
                self._lowest_rows.append(row)
            if number < self.limit:
                self._held_out.setdefault(number, []).append((self._total + place, row))
                self._held += 1
        self._total += rows
        if self._held > 2 * self._most + 1000:
            self._trim()

    def _trim(self) -> None:
        self._held_out, self.limit = _lowest_hashes(self._held_out, most=self._most, limit=self.limit)
        self._held = sum(map(len, self._held_out.values()))

    def finish(self) -> Split:
        self._trim()
        held_out = self._held_out
        if not held_out and self._share and self._most and self._lowest != self._highest:
            rows = self._lowest_rows
            return Split(self._lowest + 1, self._names, self._total, len(rows), rows)
        if self._held == self._total:
            held_out.pop(self._highest, None)  # keep some rows for training
        dev = sorted((pair for pairs in held_out.values() for pair in pairs), key=lambda pair: pair[0])
        return Split(max(held_out, default=-1) + 1, self._names, self._total, len(dev), [row for _, row in dev])


def hold_out(rows: Iterable[Mapping[str, str]], *, names: Sequence[str], share: float, most: int) -> Split:
    """Split rows in one streaming pass (see `HoldOut`)."""
    held_out = HoldOut(names=names, share=share, most=most)
    for row in rows:
        held_out.add(row)
    return held_out.finish()


def _lowest_hashes(held_out: _Rows, *, most: int, limit: int) -> tuple[_Rows, int]:
    """The lowest hashes with at most `most` rows, and the limit for further hashes."""
    kept: _Rows = {}
    rows = 0
    for number in sorted(held_out):
        rows += len(held_out[number])
        if rows > most:
            return kept, number
        kept[number] = held_out[number]
    return kept, limit


@dataclass(frozen=True)
class Tail:
    """The start of the dev part of a contiguous text: a line, and a character if a single line is cut."""

    line: int
    character: int
    characters: int
    dev_characters: int

    def train(self, lines: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            if number < self.line:
                yield line
            elif number == self.line and self.character:
                yield line[: self.character]

    def dev(self, lines: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            if number >= self.line:
                yield line[self.character :] if number == self.line else line

    @property
    def note(self) -> str:
        return f"the last {self.dev_characters:,} of {self.characters:,} characters set aside for dev"


def hold_out_tail(lines: Callable[[], Iterable[str]], *, share: float) -> Tail:
    """Hold out the last `share` of a text, from the start of a line; a single line is cut inside. Two streaming
    passes.

    lines: returns the lines, without newlines, at each call.
    """
    total = sum(len(line) + 1 for line in lines())
    if total < 3:
        raise UserError("the text is too short to hold out a part for dev; give --dev")
    start = total - max(int(total * share), 1)
    lines_before = before = 0
    for line in lines():
        if before + len(line) + 1 > start:
            break
        before += len(line) + 1
        lines_before += 1
    return Tail(lines_before, 0, total, total - before) if lines_before else Tail(0, start, total, total - start)
