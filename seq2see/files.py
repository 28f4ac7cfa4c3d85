"""Reading what a stranger may have written: regular files alone, of bounded size; text that can be written again."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from seq2see.errors import UserError

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


def parse_json(text: str) -> Any:
    """A JSON value; ValueError says what is wrong, also with text that is nested too deeply to be read."""

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number of JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair (\\ud800 to \\udfff) is not text") from None
    return value


def shortened(value: object, most: int = 80) -> str:
    """A value as Python writes it, cut after so many characters.

    >>> shortened("a" * 100, 12)
    "'aaaaaaaa..."
    >>> shortened(10**5000)
    'a number of 16610 bits'
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or something that holds one
        bits = value.bit_length() if isinstance(value, int) else 0
        return f"a number of {bits} bits" if bits else f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 3]}..."
