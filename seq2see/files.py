"""Files: read with care (regular ones alone, of bounded size) and written whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from reprlib import Repr
from typing import Any, NoReturn, TextIO

from seq2see.errors import UserError

# ---------------- Reading what a stranger may have written

MEBIBYTE = 1 << 20
SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs: no characters, so that no encoding has them. Python takes them for bytes that are no text
(command line, names of files), JSON can spell them out."""


def whole_characters(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair; two halves that belong together are one character.

    >>> whole_characters("a\\ud800b"), whole_characters("\\ud83d\\ude00") == chr(0x1F600)
    ('a\ufffdb', True)
    """
    if text.isascii() or SURROGATES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_bytes(path: Path, *, most: int, what: str) -> bytes:
    """The whole of a file of at most that many bytes; what: what the file should be, for messages.

    Devices and pipes are refused before they are opened: they may have no end, or nobody to write them.
    """
    try:
        found = path.stat()
        mode, size = found.st_mode, found.st_size
        if stat.S_ISDIR(mode):
            raise UserError(f"{path}: a folder, where {what} is expected")
        if not stat.S_ISREG(mode):
            raise UserError(f"{path}: a device or a pipe, where {what} is expected")
        if size > most:
            raise UserError(f"{path}: {size:,} bytes, and {what} has at most {most:,}")
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise UserError(f"{path}: missing; {what} is expected there") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_text(path: Path, *, most: int, what: str) -> str:
    """The same as text in UTF-8, without its byte order mark; ends of lines as they are."""
    content = read_bytes(path, most=most, what=what)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8 text (byte {error.start}), where {what} is expected") from None


def read_json(path: Path, *, most: int, what: str) -> Any:
    """The value in a JSON file; numbers that are not finite are no JSON."""
    text = read_text(path, most=most, what=what)
    try:
        return parse_json(text)
    except ValueError as error:
        raise UserError(f"{path}: damaged: not JSON: {error}") from None


class HalfCharacter(ValueError):
    """JSON that spells out half of a surrogate pair, which is not text."""


def parse_json(text: str, *, constants: bool = False, halves: bool = False, depth: int | None = None) -> Any:
    """A JSON value; ValueError says what is wrong, also with text that is nested too deeply to be read.

    constants: NaN and Infinity may stand for numbers, as Python writes them; halves: halves of surrogate pairs may be
    spelled out (otherwise a HalfCharacter); depth: of lists and objects within each other, at most.
    """

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number of JSON")

    try:
        value = json.loads(text, parse_constant=None if constants else refuse)
        if not halves and "\\ud" in text.lower() and SURROGATES.search(json.dumps(value, ensure_ascii=False)):
            raise HalfCharacter("half of a surrogate pair (\\ud800 to \\udfff) is not text")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if depth is not None and text.count("[") + text.count("{") > depth and _deeper(value, depth):
        raise ValueError(f"lists and objects are nested too deeply; allowed: {depth} levels")
    return value


def _deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def shortened(value: object, most: int = 80, *, quotes: bool = True) -> str:
    """A value as Python writes it, for a message: of what is long or nested the beginning. quotes: around a text.

    >>> shortened("a" * 100, 12), shortened("a" * 100, 12, quotes=False), shortened([[[[[1]]]]]), shortened(3.5)
    ("'aaaaaaaa...", 'aaaaaaaa...', '[[[[[...]]]]]', '3.5')
    >>> shortened(10**5000), shortened(float("-inf"))
    ('a number of 16610 bits', '-infinity')
    """
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if isinstance(value, str | bytes):
        value = value[:most]  # what is left out is not written first
    try:
        text = _Brief(most).repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or something that holds one
        bits = value.bit_length() if isinstance(value, int) else 0
        return f"a number of {bits} bits" if bits else f"a {type(value).__name__}"
    start = 0 if quotes or not isinstance(value, str) else 1
    if len(text) > most:
        return f"{text[start : most - 3]}..."
    return text[start : len(text) - start]


class _Brief(Repr):
    """Values as Python writes them, the beginning of each."""

    def __init__(self, most: int):
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = 8
        self.maxstring = self.maxlong = self.maxother = most + 2

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """In its own order: the inherited one sorts all keys."""
        if level <= 0 < len(x):
            return "{...}"
        items = islice(x.items(), self.maxdict)
        parts = [f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}" for key, value in items]
        return f"{{{', '.join([*parts, *(['...'] if len(x) > self.maxdict else [])])}}}"


# ---------------- Files to write


def write_bytes(path: Path, *parts: bytes | memoryview) -> None:
    """The file appears whole or the old one stays: written beside it, flushed to the disk, then renamed."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            for content in parts:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            kept = "the file that was there is kept" if path.exists() else "nothing was written"
            raise UserError(f"{path}: the disk is full, {sum(map(len, parts)):,} bytes do not fit; {kept}") from None
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> UserError:
    """What to raise where a file or folder cannot be written."""
    return UserError(f"{path}: cannot be written: {error.strerror or error}")


@contextmanager
def text_file(path: Path, *, packed: bool) -> Iterator[TextIO]:
    """A UTF-8 file with plain newlines; packed files carry no time stamp, so equal tables are equal files."""
    with path.open("wb") as raw:
        if not packed:
            with io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
                yield file
            return
        with (
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as unpacked,
            io.TextIOWrapper(unpacked, encoding="utf-8", newline="") as file,
        ):
            yield file


# ---------------- Numbers as JSON can hold them


def finite(value: Any) -> Any:
    """The same with null in place of infinity and of what is no number, which JSON has not.

    >>> finite({"perplexity": float("inf"), "tokens": (1, 2.5)})
    {'perplexity': None, 'tokens': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
