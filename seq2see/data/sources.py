"""Bytes of a table as numbered lines: compression, encoding, byte order marks, and files that are no text at all."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from seq2see.errors import UserError, nearest

MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook: save it as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save it as CSV",
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x1f\x8b": "compressed by gzip: name it .gz",
    b"BZh": "compressed by bzip2: only gzip is read",
    b"\xfd7zXZ": "compressed by xz: only gzip is read",
    b"\x89PNG": "a picture",
    b"%PDF": "a PDF document",
}
WIDE = ("utf-16", "utf-32")
_PROBE = 8192


class RowError(UserError):
    """One row is at fault: with `data.on_error: skip` it is dropped and counted, otherwise it stops the reading."""


def stop(error: RowError) -> None:
    """What to do with a bad row where none may be skipped."""
    raise error


def check_exists(path: Path) -> None:
    """A UserError that names the file most like it where there is none."""
    if path.exists():
        return
    folder = path.parent
    if not folder.is_dir():
        raise UserError(f"{path}: no such file: the folder {folder} does not exist")
    raise UserError(f"{path}: no such file{nearest(path.name, [other.name for other in folder.iterdir()])}")


def check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise UserError(
            f"data.encoding: unknown encoding '{encoding}'; for example utf-8, utf-16, latin-1, cp1252"
        ) from None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if its name ends in .gz; what is wrong with the file itself becomes a UserError."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                yield cast(BinaryIO, file)
        else:
            with path.open("rb") as file:
                yield file
    except gzip.BadGzipFile as error:
        raise UserError(f"{path}: not a gzip file, or a damaged one: {error}") from None
    except (EOFError, zlib.error) as error:
        raise UserError(f"{path}: the gzip file is damaged or cut short: {error}") from None
    except PermissionError:
        raise UserError(f"{path}: not allowed to read it") from None


def lines(path: Path, *, encoding: str, bad: Callable[[RowError], None]) -> Iterator[tuple[int, str]]:
    """Numbered lines (from 1) without their ends. What does not decode goes to `bad`, which raises or skips it."""
    wide = encoding.lower().replace("_", "-").startswith(WIDE)
    with opened(path) as file:
        start = file.read(_PROBE)
        _refuse_binary(path, start, wide=wide)
        file.seek(0)
        returns = _ends_in_returns(start.decode(encoding, "ignore"))
        if wide:
            yield from _wide_lines(path, file, encoding, returns=returns)
        else:
            yield from _narrow_lines(path, _split_at_returns(file) if returns else file, encoding, bad)


def _ends_in_returns(start: str) -> bool:
    """Whether lines end as on old Macintoshes, in a carriage return alone; one elsewhere is part of its line."""
    return "\r" in start[:-1] and "\n" not in start


def _split_at_returns(file: BinaryIO) -> Iterator[bytes]:
    """Lines of bytes with any kind of end. Latin-1 is the encoding that gives every byte back as it was."""
    text = io.TextIOWrapper(file, encoding="latin-1")
    try:
        for line in text:
            yield line.encode("latin-1")
    finally:
        text.detach()


def _narrow_lines(
    path: Path, file: Iterable[bytes], encoding: str, bad: Callable[[RowError], None]
) -> Iterator[tuple[int, str]]:
    """Line by line, so that an error knows its line and the rest of the file can still be read."""
    for number, raw in enumerate(file, start=1):
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError as error:
            bad(
                RowError(
                    f"{path}, line {number}, byte {error.start + 1}: 0x{raw[error.start]:02x} is not {encoding}"
                    f" ({error.reason}); if the file has another encoding, set data.encoding"
                )
            )
            continue
        yield number, text.rstrip("\r\n")


def _wide_lines(path: Path, file: BinaryIO, encoding: str, *, returns: bool) -> Iterator[tuple[int, str]]:
    """Encodings in which a newline is not one byte are decoded as a whole stream."""
    number = 0
    try:
        with io.TextIOWrapper(file, encoding=encoding, newline=None if returns else "\n") as text:
            for number, line in enumerate(text, start=1):
                yield number, (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r\n")
    except UnicodeError as error:
        raise UserError(f"{path}, after line {number}: not {encoding}: {error}") from None


def _refuse_binary(path: Path, start: bytes, *, wide: bool) -> None:
    for magic, what in MAGIC.items():
        if start.startswith(magic):
            raise UserError(f"{path}: not a table of text but {what}")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not wide:
        raise UserError(f"{path}: the text is encoded in UTF-16; set data.encoding=utf-16")
    if b"\0" in start and not wide:
        raise UserError(f"{path}: a binary file, not text (a zero byte at byte {start.index(0) + 1})")
