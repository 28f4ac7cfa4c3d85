"""Blocks of a large table, read by several processes: rows become numbers of parts, and hashes.

A part is what a field splits a value into before it knows its symbols: words between spaces, characters, or the value
itself. A process numbers the parts as it meets them and reports each new one once, so that symbols are made of distinct
parts alone, and none of the rows is read again once the vocabulary is known.

Run as a program, this is one such process: it reads jobs from its standard input and writes answers to its standard
output until the input ends. A message is its length in four bytes, then JSON; the bytes that it announces follow. There
is no pickle, and nothing here imports torch.
"""

from __future__ import annotations

import gc
import json
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import chain, compress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from seq2see.data import tokens
from seq2see.data.formats import Block, Layout
from seq2see.data.plain_blocks import NumberTable, PlainBlock
from seq2see.data.split import prefixed
from seq2see.data.tokens import Unit, text_content

_UNUSUAL = ("  ", "\n ", " \n", "\n\n", *"\t\x0b\x0c\r\x1c\x1d\x1e\x1f")
"""What lines have that `text_content` changes, or that are empty."""
MAX_PARTS = 1 << 18
"""Parts that a process knows by number; beyond them it forgets all and begins anew, so that its memory is bounded."""
ALL = (1 << 64) - 1
_LENGTH = struct.Struct(">I")
_PIPE = 1 << 20
"""Bytes that wait between two processes, so that neither waits for the other within a block."""
COMMAND = (sys.executable, "-P", "-m", "seq2see.data.blocks")

Column = list[str]


@dataclass(frozen=True)
class ColumnParts:
    """One column of a recipe. unit: what its parts are; needed: rows without a value are left out; hashed: it is an
    input, by which rows are told apart; the others: how its values are normalised before they are split into
    characters."""

    name: str
    unit: Unit
    needed: bool = True
    hashed: bool = True
    case: tokens.Case = "keep"
    unicode: tokens.UnicodeForm = "NFC"
    punctuation: bool = True

    def split(self, values: Column) -> tuple[Iterable[str], NDArray[np.int32]]:
        """(the parts of all values, how many each has)."""
        parts = self.parts(values)
        return chain.from_iterable(parts), np.fromiter(map(len, parts), np.int32, len(parts))

    def parts(self, values: Column) -> list[Any]:
        """Of each value its parts."""
        if self.unit == "word":
            return [value.split() for value in values]
        if self.unit == "value":
            return [(value,) for value in values]
        normalise, how = tokens.normalise, (self.case, self.unicode, self.punctuation)
        return [list(normalise(value, case=how[0], unicode=how[1], punctuation=how[2]).strip()) for value in values]


@dataclass
class EncodedBlock:
    """The rows of a block, without those that have an empty value where one is needed.

    rows: their number; taken: (rows,) their numbers in the block; hashes: (rows,) uint64, `row_hash` of each; lengths:
    for each column (rows,) parts of each row; parts: for each column (parts,) their numbers; new: for each column
    the parts that have got the next numbers; anew: numbers begin at 0 again; sampled: (3, n) row in the block,
    `RowHasher`'s two hashes, of rows whose first is at most the bound; low: (row, values) of those whose hash is below
    the limit or the lowest of all; blanks: (column, rows, first of them) of what was left out.
    """

    rows: int
    taken: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    lengths: list[NDArray[np.int32]]
    parts: list[NDArray[np.int32]]
    new: list[Column]
    anew: bool
    sampled: NDArray[np.uint64]
    low: list[tuple[int, list[str]]]
    blanks: list[tuple[int, int, int]] = field(default_factory=list)


class _Numbers(dict[str, int]):
    """Numbers for parts in the order in which they are first asked for; new: those since it was last emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.new: Column = []

    def __missing__(self, part: str) -> int:
        self.new.append(part)
        number = self[part] = len(self)
        return number


class Encoder:
    """Numbers the parts of rows and hashes them. columns: inputs first, the output last."""

    def __init__(self, columns: Sequence[ColumnParts]):
        self.columns = columns
        self._numbers = [_Numbers() for _ in columns]
        self._tables = [NumberTable(numbers) for numbers in self._numbers]
        self._plain = all(column.unit != "character" for column in columns)
        hashed = [i for i, column in enumerate(columns) if column.hashed]
        self._inputs, self._hashed = hashed, hashed or [len(columns) - 1]

    def encode_lines(self, content: bytes, layout: Layout, *, most: int, limit: int, bound: int) -> EncodedBlock | None:
        """The lines of a block; None where they have to be read one by one. most: characters of a value."""
        plain = PlainBlock.of(content, layout, most) if self._plain else None
        if plain is not None:
            return self._encode_plain(plain, limit=limit, bound=bound)
        values = layout.split(content, most)
        return None if values is None else self.encode(values, limit=limit, bound=bound)

    def _encode_plain(self, block: PlainBlock, *, limit: int, bound: int) -> EncodedBlock:
        anew = self._forget()
        lengths, numbered = [], []
        for i, (column, table) in enumerate(zip(self.columns, self._tables, strict=True)):
            starts, stops, sizes = block.parts(i, column.unit)
            lengths.append(sizes)
            numbered.append(table.number(block, starts, stops))
        hashes = _hashes([block.fields[i] for i in self._hashed])
        rows = np.flatnonzero(hashes <= np.uint64(bound))
        pairs = hashes[rows]
        if self._inputs:
            chosen = rows.tolist()
            pairs = _hashes([[block.fields[i][row] for row in chosen] for i in [*self._inputs, -1]])
        sampled = np.stack([rows.astype(np.uint64), hashes[rows], pairs])
        low = [(row, [cells[row].decode() for cells in block.fields]) for row in _low(hashes, limit)]
        taken = np.arange(block.rows, dtype=np.int32)
        return EncodedBlock(block.rows, taken, hashes, lengths, numbered, self._new(), anew, sampled, low)

    def _forget(self) -> bool:
        """Begin anew where too many parts are known."""
        anew = any(len(numbers) > MAX_PARTS for numbers in self._numbers)
        if anew:
            for numbers, table in zip(self._numbers, self._tables, strict=True):
                numbers.clear()
                table.clear()
        return anew

    def _new(self) -> list[Column]:
        """For each column the parts that were numbered since the last block."""
        new = [numbers.new for numbers in self._numbers]
        for numbers in self._numbers:
            numbers.new = []
        return new

    def encode(self, values: list[Column], *, limit: int, bound: int) -> EncodedBlock:
        """values: for each column those of all rows; limit, bound: see `EncodedBlock`."""
        anew = self._forget()
        texts = [_plain_text(cells) for cells in values]
        kept, blanks = self._kept(values, texts)
        if kept is not None:
            values = [list(compress(cells, kept)) for cells in values]
            texts = [_plain_text(cells) for cells in values]
        rows = len(values[0])
        taken = np.arange(rows, dtype=np.int32) if kept is None else np.flatnonzero(kept).astype(np.int32)
        lengths, numbered = [], []
        for column, numbers, cells, text in zip(self.columns, self._numbers, values, texts, strict=True):
            flat, sizes = _split_plain(text) if text and column.unit == "word" else column.split(cells)
            lengths.append(sizes)
            numbered.append(np.fromiter(map(numbers.__getitem__, flat), np.int32, int(sizes.sum())))
        hashes = _hashes([_bytes(values[i]) for i in self._hashed])
        sampled = self._sampled(values, texts, hashes, bound)
        low = [(row, [cells[row] for cells in values]) for row in _low(hashes, limit)]
        return EncodedBlock(rows, taken, hashes, lengths, numbered, self._new(), anew, sampled, low, blanks)

    def _kept(self, values: list[Column], texts: list[str]) -> tuple[list[bool] | None, list[tuple[int, int, int]]]:
        """(which rows have all they need, None: all of them; the blank values of the others, as in `EncodedBlock`)."""
        kept: list[bool] | None = None
        blanks = []
        for i, column in enumerate(self.columns):
            if not column.needed or texts[i]:
                continue
            filled = [bool(value.strip()) for value in values[i]]
            if kept is not None:
                filled = [one or not other for one, other in zip(filled, kept, strict=True)]
            count = filled.count(False)
            if count:
                blanks.append((i, count, filled.index(False)))
                kept = filled if kept is None else [a and b for a, b in zip(kept, filled, strict=True)]
        return kept, blanks

    def _sampled(
        self, values: list[Column], texts: list[str], hashes: NDArray[np.uint64], bound: int
    ) -> NDArray[np.uint64]:
        """The hashes by which evaluation knows rows again, of those up to a bound."""
        contents = {i: values[i] if texts[i] else list(map(text_content, values[i])) for i in self._hashed}
        same = all(texts[i] for i in self._hashed)
        inputs = hashes if same else _hashes([_bytes(contents[i]) for i in self._hashed])
        rows = np.flatnonzero(inputs <= np.uint64(bound))
        pairs = inputs[rows]
        if self._inputs:
            chosen = rows.tolist()
            columns = [[contents[i][row] for row in chosen] for i in self._inputs]
            columns.append([text_content(values[-1][row]) for row in chosen])
            pairs = _hashes([_bytes(column) for column in columns])
        return np.stack([rows.astype(np.uint64), inputs[rows], pairs])


def _plain_text(values: Column) -> str:
    """The values as lines, if they are ASCII, none is empty and all spaces are single ones between words: what
    `text_content` does not change. Empty text for others."""
    text = "\n".join(["", *values, ""])
    plain = text.isascii() and text.count("\n") == len(values) + 1 and not any(mark in text for mark in _UNUSUAL)
    return text if plain else ""


def _split_plain(text: str) -> tuple[Column, NDArray[np.int32]]:
    """The words of a plain text, and how many each line has."""
    marks = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    ends = np.flatnonzero(marks[(marks == ord(" ")) | (marks == ord("\n"))] == ord("\n"))
    return text.split(), np.diff(ends).astype(np.int32)


def _low(hashes: NDArray[np.uint64], limit: int) -> list[int]:
    """The rows whose hash is below a limit or the lowest of all."""
    least = hashes.min() if len(hashes) else np.uint64(0)
    rows: list[int] = np.flatnonzero((hashes < np.uint64(limit)) | (hashes == least)).tolist()
    return rows


def _bytes(values: Column) -> list[bytes]:
    return [value.encode("utf-8", "surrogatepass") for value in values]


def _hashes(columns: list[list[bytes]]) -> NDArray[np.uint64]:
    """`row_hash` of rows, whose values are given by column: (rows,)"""
    prefixes, most = _PREFIXES, len(_PREFIXES)  # the lengths of short values are looked up
    if len(columns) == 1:
        joined = b"".join(
            [
                blake2b(prefixes[len(value)] + value if len(value) < most else prefixed(value), digest_size=8).digest()
                for value in columns[0]
            ]
        )
    else:
        parts = [[prefixes[len(v)] + v if len(v) < most else prefixed(v) for v in column] for column in columns]
        rows = map(b"".join, zip(*parts, strict=True))
        joined = b"".join([blake2b(row, digest_size=8).digest() for row in rows])
    return np.frombuffer(joined, dtype="<u8")


_PREFIXES = [prefixed(bytes(length))[:8] for length in range(256)]


# ---------------- Processes


def _send(stream: IO[bytes], header: dict[str, Any], payloads: Iterable[Any] = ()) -> None:
    text = json.dumps(header).encode()
    stream.write(_LENGTH.pack(len(text)) + text)
    for payload in payloads:
        stream.write(memoryview(payload).cast("B") if len(payload) else b"")
    stream.flush()


def _receive(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message; None at the end."""
    start = stream.read(_LENGTH.size)
    if len(start) < _LENGTH.size:
        return None
    header: dict[str, Any] = json.loads(stream.read(_LENGTH.unpack(start)[0]))
    return header


def _answer(block: EncodedBlock) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    arrays: list[NDArray[Any]] = [block.taken, block.hashes, block.sampled.ravel(), *block.lengths, *block.parts]
    header = {
        "rows": block.rows,
        "sizes": [len(array) for array in arrays],
        "kinds": [array.dtype.str for array in arrays],
        "new": block.new,
        "anew": block.anew,
        "low": block.low,
        "blanks": block.blanks,
    }
    return header, arrays


def _block(header: dict[str, Any], read: Callable[[int], bytes]) -> EncodedBlock:
    kinds = map(np.dtype, header["kinds"])
    arrays: list[NDArray[Any]] = [
        np.frombuffer(read(size * kind.itemsize), dtype=kind) for size, kind in zip(header["sizes"], kinds, strict=True)
    ]
    taken, hashes, sampled, *rest = arrays
    columns = len(rest) // 2
    low = [(row, values) for row, values in header["low"]]
    blanks = [(column, rows, first) for column, rows, first in header["blanks"]]
    new, anew = header["new"], header["anew"]
    lengths, parts = rest[:columns], rest[columns:]
    return EncodedBlock(header["rows"], taken, hashes, lengths, parts, new, anew, sampled.reshape(3, -1), low, blanks)


class _Process:
    """One process that encodes blocks, one at a time."""

    def __init__(self, number: int, setup: dict[str, Any]):
        self.number = number
        self._popen = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pipesize=_PIPE if sys.platform == "linux" else -1
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin, self._stdout = self._popen.stdin, self._popen.stdout
        _send(self._stdin, setup)

    def encode(self, content: bytes | None, limits: tuple[int, int]) -> EncodedBlock | None:
        if content is None:
            return None
        try:
            _send(self._stdin, {"bytes": len(content), "limit": limits[0], "bound": limits[1]}, [content])
            header = _receive(self._stdout)
        except OSError:
            header = None
        if header is None:
            raise RuntimeError(f"a process that reads the table ended unexpectedly (exit code {self._popen.wait()})")
        return _block(header, self._stdout.read) if header else None

    def close(self) -> None:
        self._popen.kill()
        self._popen.wait()
        self._stdin.close()
        self._stdout.close()


class Encoders:
    """Encodes blocks by several processes, and answers in the order of the blocks; with no processes, in this one.

    most: characters of a value.
    """

    def __init__(self, columns: Sequence[ColumnParts], layout: Layout | None, *, processes: int, most: int):
        self._layout, self._most = layout, most
        self.own = Encoder(columns)
        setup = {"columns": [asdict(column) for column in columns], "most": most}
        if layout is None:
            processes = 0
        else:
            setup["layout"] = asdict(layout)
        self._processes = [_Process(number, setup) for number in range(1, processes + 1)]
        # a thread for each: a process answers in the order in which the parts it names are numbered
        self._threads = [ThreadPoolExecutor(1) for _ in self._processes]

    def close(self) -> None:
        for process in self._processes:
            process.close()
        for thread in self._threads:
            thread.shutdown()

    def map(
        self, blocks: Iterable[Block], limits: Callable[[], tuple[int, int]]
    ) -> Iterator[tuple[Block, int, EncodedBlock | None]]:
        """(block, number of the process, its rows; None where it has to be read line by line), in order.

        limits: the current limit and bound (see `EncodedBlock`).
        """
        if not self._processes:
            for block in blocks:
                yield block, 0, self._encode(block.content, limits())
            return
        waiting: deque[tuple[Block, int, Future[EncodedBlock | None]]] = deque()
        for number, block in enumerate(blocks):
            turn = number % len(self._processes)
            job = self._threads[turn].submit(self._processes[turn].encode, block.content, limits())
            waiting.append((block, self._processes[turn].number, job))
            if len(waiting) > 2 * len(self._processes):
                done, process, future = waiting.popleft()
                yield done, process, future.result()
        while waiting:
            done, process, future = waiting.popleft()
            yield done, process, future.result()

    def _encode(self, content: bytes | None, limits: tuple[int, int]) -> EncodedBlock | None:
        if content is None or self._layout is None:
            return None
        return self.own.encode_lines(content, self._layout, most=self._most, limit=limits[0], bound=limits[1])


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training that it reads for ends it
    gc.disable()  # rows are many small lists, none of which is in a cycle
    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    setup = _receive(jobs)
    if setup is None:
        return
    encoder = Encoder([ColumnParts(**column) for column in setup["columns"]])
    layout = Layout(**setup["layout"])
    while (job := _receive(jobs)) is not None:
        content, (limit, bound) = jobs.read(job["bytes"]), (job["limit"], job["bound"])
        block = encoder.encode_lines(content, layout, most=setup["most"], limit=limit, bound=bound)
        if block is None:
            _send(answers, {})
        else:
            _send(answers, *_answer(block))


if __name__ == "__main__":
    main()
