"""Rows set aside for dev by a rule that looks at the row alone, so that it holds in any order and on any machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from seq2see.data.columns import as_written
from seq2see.errors import UserError, counted

Values = TypeVar("Values", bound=Mapping[str, str])
_WHOLE = 1 << 64


@dataclass(frozen=True)
class Split:
    """A row is for dev if the number its inputs are hashed to is below a threshold: equal inputs stay on one side.

    names: whose values are hashed; rows, dev_rows: how many there are, and how many of them are set aside.
    """

    threshold: int
    names: tuple[str, ...]
    rows: int
    dev_rows: int

    def is_dev(self, row: Mapping[str, str]) -> bool:
        return number_of(row, self.names) < self.threshold

    def train(self, rows: Iterable[Values]) -> Iterator[Values]:
        return (row for row in rows if not self.is_dev(row))

    def dev(self, rows: Iterable[Values]) -> Iterator[Values]:
        return (row for row in rows if self.is_dev(row))

    @property
    def note(self) -> str:
        if not self.dev_rows:
            return f"none of {counted(self.rows, 'row')} set aside for dev"
        return f"{self.dev_rows:,} of {counted(self.rows, 'row')} set aside for dev"


def number_of(row: Mapping[str, str], names: Sequence[str]) -> int:
    """A number below 2 ** 64 that depends on the values alone, the same on every machine, in every folder and run."""
    digest = blake2b(digest_size=8)
    for name in names:
        value = as_written(row, name).encode("utf-8", "surrogatepass")
        digest.update(len(value).to_bytes(8, "little") + value)
    return int.from_bytes(digest.digest(), "little")


def set_aside(rows: Iterable[Mapping[str, str]], *, names: Sequence[str], share: float, most: int) -> Split:
    """Find the threshold that sets about `share` of the rows aside, and not more than `most`, in one streaming pass.

    names: the inputs, or the output where there are none. The rows with the lowest numbers are taken: at least one
    where there are two different inputs. Not many more than `most` numbers are ever held in memory.
    """
    limit = int(share * _WHOLE)
    counts: dict[int, int] = {}
    held = total = 0
    lowest, lowest_rows, highest = _WHOLE, 0, -1
    for row in rows:
        total += 1
        number = number_of(row, names)
        highest = max(highest, number)
        if number <= lowest:
            lowest, lowest_rows = number, lowest_rows + 1 if number == lowest else 1
        if number < limit:
            counts[number] = counts.get(number, 0) + 1
            held += 1
            if held > 2 * most + 1000:
                counts, limit = _lowest(counts, most=most, limit=limit)
                held = sum(counts.values())
    counts, limit = _lowest(counts, most=most, limit=limit)
    if not counts and share and most and lowest != highest:
        counts = {lowest: lowest_rows}
    if sum(counts.values()) == total:
        counts.pop(highest, None)  # something must be left to train on
    return Split(max(counts, default=-1) + 1, tuple(names), total, sum(counts.values()))


def _lowest(counts: dict[int, int], *, most: int, limit: int) -> tuple[dict[int, int], int]:
    """The lowest numbers whose rows are not more than `most`, and the limit that further numbers have to stay below."""
    kept: dict[int, int] = {}
    rows = 0
    for number in sorted(counts):
        rows += counts[number]
        if rows > most:
            return kept, number
        kept[number] = counts[number]
    return kept, limit


@dataclass(frozen=True)
class Tail:
    """Where the dev part of a contiguous text begins: a line, and a character of it where a single line is cut."""

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


def set_tail_aside(lines: Callable[[], Iterable[str]], *, share: float) -> Tail:
    """The last `share` of a text, from the beginning of a line; a single line is cut inside. Two streaming passes.

    lines: gives the lines, without their newlines, anew at each call.
    """
    total = sum(len(line) + 1 for line in lines())
    if total < 3:
        raise UserError("the text is too short to set a part of it aside for dev; give --dev")
    aim = total - max(int(total * share), 1)
    whole = before = 0
    for line in lines():
        if before + len(line) + 1 > aim:
            break
        before += len(line) + 1
        whole += 1
    return Tail(whole, 0, total, total - before) if whole else Tail(0, aim, total, total - aim)
