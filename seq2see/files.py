"""Files that strangers may have written are read with limits; files are written as a whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from reprlib import Repr
from typing import Any, NoReturn, TextIO

from seq2see.errors import UserError

# ---------------- Reading

MEBIBYTE = 1 << 20
SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which are not characters and cannot be encoded. Python uses them for bytes that are not
text (command line, file names), and JSON can spell them out."""


def whole_characters(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair; two halves that belong together become a character.

    >>> whole_characters("a\\ud800b"), whole_characters("\\ud83d\\ude00") == chr(0x1F600)
    ('a\ufffdb', True)
    """
    if text.isascii() or SURROGATES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_bytes(path: Path, *, most: int, what: str) -> bytes:
    """The content of a file of at most `most` bytes. what: what the file should be, for messages.

    Devices and pipes are refused before they are opened: reading them may never end.
    """
    try:
        status = path.stat()
        mode, size = status.st_mode, status.st_size
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
    """The content of a UTF-8 file, without a byte order mark; line ends are not changed."""
    content = read_bytes(path, most=most, what=what)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8 text (byte {error.start}), where {what} is expected") from None


def read_json(path: Path, *, most: int, what: str) -> Any:
    """The value in a JSON file; NaN and infinity are refused."""
    text = read_text(path, most=most, what=what)
    try:
        return parse_json(text)
    except ValueError as error:
        raise UserError(f"{path}: damaged: not JSON: {error}") from None


class HalfCharacter(ValueError):
    """JSON with half of a surrogate pair, which is not text."""


def parse_json(text: str, *, constants: bool = False, halves: bool = False, depth: int | None = None) -> Any:
    """Parse JSON; a ValueError says what is wrong, also with text that is nested too deeply.

    constants: allow NaN and Infinity, as Python writes them; halves: allow halves of surrogate pairs (otherwise they
    raise HalfCharacter); depth: the deepest nesting of lists and objects.
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
            for container in level
            if isinstance(container, dict | list)
            for part in (container.values() if isinstance(container, dict) else container)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def shortened(value: object, most: int = 80, *, quotes: bool = True) -> str:
    """The `repr` of a value for a message, cut to `most` characters and a few levels. quotes: around a text.

    >>> shortened("a" * 100, 12), shortened("a" * 100, 12, quotes=False), shortened([[[[[1]]]]]), shortened(3.5)
    ("'aaaaaaaa...", 'aaaaaaaa...', '[[[[[...]]]]]', '3.5')
    >>> shortened(10**5000), shortened(float("-inf"))
    ('a number of 16610 bits', '-infinity')
    """
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if isinstance(value, str | bytes):
        value = value[:most]  # the rest would be cut off anyway
    try:
        text = _Brief(most).repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or a container of one
        bits = value.bit_length() if isinstance(value, int) else 0
        return f"a number of {bits} bits" if bits else f"a {type(value).__name__}"
    start = 0 if quotes or not isinstance(value, str) else 1
    if len(text) > most:
        return f"{text[start : most - 3]}..."
    return text[start : len(text) - start]


class _Brief(Repr):
    """`repr` that stops after the beginning of long values."""

    def __init__(self, most: int):
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = 8
        self.maxstring = self.maxlong = self.maxother = most + 2

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Keys in the order of the dict; the base class would sort all of them."""
        if level <= 0 < len(x):
            return "{...}"
        items = islice(x.items(), self.maxdict)
        parts = [f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}" for key, value in items]
        return f"{{{', '.join([*parts, *(['...'] if len(x) > self.maxdict else [])])}}}"


# ---------------- Writing


def write_bytes(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file as a whole, or leave the old one: it is written beside it, flushed to the disk, then renamed."""
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
    """The error for a file or folder that cannot be written."""
    return UserError(f"{path}: cannot be written: {error.strerror or error}")


@contextmanager
def new_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill, which gets its name once it is complete; one that is there already must be empty, or is
    replaced."""
    try:
        if path.exists() and not replace and (not path.is_dir() or any(path.iterdir())):
            raise UserError(f"{path}: already exists; give the name of a new folder, or of an empty one")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise unwritable(path, error) from None
    old = part.with_name(f"{part.name}.old")
    try:
        yield part
        part.chmod(0o755)
        if replace and path.exists():
            path.replace(old)
        part.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        if old.exists() and not path.exists():  # the new one could not take its place
            old.replace(path)
        for folder in (part, old):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def text_file(path: Path, *, packed: bool) -> Iterator[TextIO]:
    """Open a UTF-8 file for writing, with plain newlines. packed: as gzip, without a time stamp, so that equal tables
    give equal files."""
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


# ---------------- Numbers in JSON


def finite(value: Any) -> Any:
    """The value with None for NaN and infinity, which JSON does not have.

    >>> finite({"perplexity": float("inf"), "tokens": (1, 2.5)})
    {'perplexity': None, 'tokens': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
