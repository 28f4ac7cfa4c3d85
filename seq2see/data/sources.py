"""Bytes of a table as numbered lines: compression, encoding, byte order marks, binary files."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from seq2see.errors import UserError, imported, nearest
from seq2see.files import SURROGATES

MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook: name that .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save it as .xlsx or CSV",
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x1f\x8b": "compressed by gzip: name it .gz",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard: name it .zst",
    b"BZh": "compressed by bzip2: only gzip and Zstandard are read",
    b"\xfd7zXZ": "compressed by xz: only gzip and Zstandard are read",
    b"\x89PNG": "an image",
    b"%PDF": "a PDF document",
}
WIDE = ("utf-16", "utf-32")
WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins as that of UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks and their encodings."""
NOT_OF_FILES = ("unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined")
"""Python codecs that are not encodings of text files."""
AT_ONCE = ("utf-8", "ascii", "iso8859-1")
"""Codecs with which a block of lines decodes like each line alone, and which cannot produce surrogates."""
_PROBE = 8192
_BLOCK, _PIECE = 1 << 16, 1 << 20
"""Bytes read at once: initially, and at most for long lines."""
_PARALLEL = 1 << 18
"""Bytes of a block that is read by another process: few enough that its rows stay in the processor's cache."""


MAX_ROW = 1 << 24
"""Bytes of a line, quoted record or row: about 2.5 million words. A small file may unpack without end, so no line is
read without a limit."""
MAX_CELL = 1 << 23
"""Characters of one value."""
MAX_COLUMNS = 10_000
MAX_NAME = 1_000
"""Characters of a column name."""


PACKED = (".gz", ".zst")
_PACKED_PIECE = 1 << 10
"""Bytes of a Zstandard file that are unpacked at once: to 50 MB at the most."""
"""Suffixes of compressed tables."""
MAX_WINDOW = 1 << 27
"""Bytes of memory that unpacking Zstandard may take."""


class RowError(UserError):
    """An error in one row: with `data.on_error: skip` the row is dropped and counted, otherwise reading stops."""


def raise_error(error: RowError) -> None:
    """Raise the error: the handler of bad rows where none may be skipped."""
    raise error


def check_exists(path: Path) -> None:
    """Raise a UserError that suggests the most similar file name if the file does not exist."""
    if path.is_file() or path.is_dir():
        return
    if path.exists():
        raise UserError(f"{path}: a device or a pipe; a table must be a file, because it is read more than once")
    folder = path.parent
    if not folder.is_dir():
        raise UserError(f"{path}: no such file: the folder {folder} does not exist")
    raise UserError(f"{path}: no such file{nearest(path.name, [other.name for other in folder.iterdir()])}")


def check_encoding(encoding: str) -> None:
    try:
        if codecs.lookup(encoding).name in NOT_OF_FILES:
            raise LookupError(encoding)
        b"a\xff".decode(encoding, "ignore")
    except (LookupError, ValueError):  # ValueError: a NUL in the name, or a codec that is not for text
        raise UserError(
            f"data.encoding: unknown encoding '{encoding}'; for example utf-8, utf-16, latin-1, cp1252"
        ) from None


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if its name ends in .gz or .zst; problems of the file become UserErrors. They are
    read forwards only."""
    damaged: tuple[type[Exception], ...] = ()
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                yield cast(BinaryIO, file)
        elif path.suffix == ".zst":
            library = imported("zstandard", extra="zstd")
            damaged = (library.ZstdError,)
            unpacker = library.ZstdDecompressor(max_window_size=MAX_WINDOW)
            with path.open("rb") as packed:
                yield cast(BinaryIO, io.BufferedReader(_ZstdFile(path, packed, unpacker), _BLOCK))
        else:
            with path.open("rb") as file:
                yield file
    except gzip.BadGzipFile as error:
        raise UserError(f"{path}: not a gzip file, or a damaged one: {error}") from None
    except (EOFError, zlib.error) as error:
        raise UserError(f"{path}: the gzip file is damaged or cut short: {error}") from None
    except damaged as error:
        raise UserError(f"{path}: not a Zstandard file, or a damaged one: {error}") from None
    except PermissionError:
        raise UserError(f"{path}: permission denied") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


class _ZstdFile(io.RawIOBase):
    """The unpacked bytes of a Zstandard file of one frame or several; a UserError where it ends inside a frame, which
    the library's own reader takes for the end of the file."""

    def __init__(self, path: Path, packed: BinaryIO, unpacker: Any):
        self._path, self._packed, self._unpacker = path, packed, unpacker
        self._frame: Any = None
        self._ahead, self._content = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._content:
            piece = self._ahead or self._packed.read(_PACKED_PIECE)
            self._ahead = b""
            if not piece:
                if self._frame is not None:
                    raise UserError(f"{self._path}: the Zstandard file is cut short")
                return 0
            if self._frame is None:
                self._frame = self._unpacker.decompressobj()
            self._content = memoryview(self._frame.decompress(piece))
            if self._frame.eof:
                self._ahead, self._frame = self._frame.unused_data, None
        size = min(len(buffer), len(self._content))
        buffer[:size], self._content = self._content[:size], self._content[size:]
        return size


def read_lines(path: Path, *, encoding: str, bad: Callable[[RowError], None]) -> Iterator[tuple[int, str]]:
    """Numbered lines (from 1) without line ends. Undecodable lines go to `bad`, which raises or skips."""
    with open_bytes(path) as file:
        start = file.read(_PROBE)
    encoding = _marked(start, encoding)
    wide = encoding.lower().replace("_", "-").startswith(WIDE)
    _refuse_binary(path, start, wide=wide)
    returns = _ends_in_returns(start.decode(encoding, "ignore"))
    with open_bytes(path) as file:
        if wide:
            yield from _wide_lines(path, file, encoding, bad, returns=returns)
        else:
            yield from _narrow_lines(path, file, encoding, bad, returns=returns)


def _marked(start: bytes, encoding: str) -> str:
    """UTF-16 or UTF-32 where a file that is to be UTF-8 begins with their byte order mark (spreadsheets save "Unicode
    text" so); the given encoding elsewhere."""
    if codecs.lookup(encoding).name != "utf-8":
        return encoding
    return next((wide for mark, wide in WIDE_MARKS.items() if start.startswith(mark)), encoding)


def _ends_in_returns(start: str) -> bool:
    """Whether lines end in a carriage return alone, as on old Macintoshes; elsewhere it is part of the line."""
    return "\r" in start[:-1] and "\n" not in start


def _too_long(path: Path, number: int) -> str:
    return f"{path}, line {number}: longer than {MAX_ROW:,} bytes, the limit of a row"


def _pieces(path: Path, readline: Callable[[int], str], bad: Callable[[RowError], None]) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends. A line that is too long goes to `bad`; if that returns, its rest is skipped in
    pieces, so that memory stays bounded."""
    number = 0
    while line := readline(MAX_ROW + 1):
        number += 1
        if len(line) <= MAX_ROW or line.endswith("\n"):
            yield number, line
            continue
        bad(RowError(_too_long(path, number)))
        while (line := readline(_PIECE)) and not line.endswith("\n"):
            pass


def _narrow_lines(
    path: Path, file: BinaryIO, encoding: str, bad: Callable[[RowError], None], *, returns: bool
) -> Iterator[tuple[int, str]]:
    """Lines of encodings in which a newline is one byte. Those in which that byte means nothing else are decoded in
    blocks, all others (and blocks with errors) line by line, so that an error has a line number and the rest can be
    read."""
    if returns:
        yield from _decoded(path, _split_at_returns(path, file, bad), encoding, bad)
        return
    for first, block in _blocks(path, file, bad):
        yield from block_lines(path, block, first, encoding=encoding, bad=bad)


def block_lines(
    path: Path, block: bytes, first: int, *, encoding: str, bad: Callable[[RowError], None]
) -> Iterator[tuple[int, str]]:
    """The numbered lines of a block, without line ends; first: the number of its first line."""
    if first == 1:
        block = block.removeprefix(codecs.BOM_UTF8)
    try:
        text = block.decode(encoding) if codecs.lookup(encoding).name in AT_ONCE else None
    except UnicodeError:
        text = None
    if text is None:
        yield from _decoded(path, enumerate(io.BytesIO(block), start=first), encoding, bad)
        return
    parts = text.removesuffix("\n").split("\n")
    yield from enumerate([line.rstrip("\r") for line in parts] if "\r" in text else parts, start=first)


def read_blocks(path: Path, *, encoding: str, bad: Callable[[RowError], None]) -> Iterator[tuple[int, bytes]] | None:
    """Blocks of complete lines in UTF-8, each with the number of its first line, without a byte order mark; None where
    lines cannot be told apart before they are decoded."""
    if codecs.lookup(encoding).name != "utf-8":
        return None
    with open_bytes(path) as file:
        start = file.read(_PROBE)
    if _marked(start, encoding) != encoding or _ends_in_returns(start.decode(encoding, "ignore")):
        return None
    return _read_blocks(path, start, bad)


def _read_blocks(path: Path, start: bytes, bad: Callable[[RowError], None]) -> Iterator[tuple[int, bytes]]:
    _refuse_binary(path, start, wide=False)
    with open_bytes(path) as file:
        for first, block in _blocks(path, file, bad, least=_PARALLEL):
            yield first, block.removeprefix(codecs.BOM_UTF8) if first == 1 else block


def _blocks(
    path: Path, file: BinaryIO, bad: Callable[[RowError], None], *, least: int = _BLOCK
) -> Iterator[tuple[int, bytes]]:
    """Blocks of complete lines with the number of the first. A line that is too long goes to `bad`; if that returns,
    its rest is skipped, so that memory stays bounded."""
    number, rest, most = 1, b"", min(_PIECE, MAX_ROW)
    while piece := file.read(min(max(least, len(rest)), most)):
        rest += piece
        if len(rest) > MAX_ROW and rest.find(b"\n", 0, MAX_ROW + 1) < 0:
            bad(RowError(_too_long(path, number)))
            number += 1
            while (end := rest.find(b"\n")) < 0 and rest:
                rest = file.read(most)
            rest = rest[end + 1 :]
        if end := rest.rfind(b"\n") + 1:
            yield number, rest[:end]
            number += rest.count(b"\n", 0, end)
            rest = rest[end:]
    if rest:
        yield number, rest


def _decoded(
    path: Path, numbered: Iterable[tuple[int, bytes]], encoding: str, bad: Callable[[RowError], None]
) -> Iterator[tuple[int, str]]:
    for number, raw in numbered:
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            text = raw.decode(encoding)
        except UnicodeError as error:
            bad(RowError(f"{path}, line {number}{_undecodable(error, encoding)}"))
            continue
        if not text.isascii() and SURROGATES.search(text):
            bad(RowError(f"{path}, line {number}: half of a surrogate pair (\\ud800 to \\udfff) is not text"))
            continue
        yield number, text.rstrip("\r\n")


def _undecodable(error: UnicodeError, encoding: str) -> str:
    if not isinstance(error, UnicodeDecodeError):
        return f": not {encoding}: {error}"
    return (
        f", byte {error.start + 1}: 0x{error.object[error.start]:02x} is not {encoding} ({error.reason}); if the file"
        " has another encoding, name it, as in --set data.encoding=cp1252"
    )


def _split_at_returns(path: Path, file: BinaryIO, bad: Callable[[RowError], None]) -> Iterator[tuple[int, bytes]]:
    """Lines of bytes with any kind of line end; Latin-1 preserves every byte."""
    text = io.TextIOWrapper(file, encoding="latin-1")
    try:
        for number, line in _pieces(path, text.readline, bad):
            yield number, line.encode("latin-1")
    finally:
        with suppress(ValueError):  # the file may already be closed
            text.detach()


def _wide_lines(
    path: Path, file: BinaryIO, encoding: str, bad: Callable[[RowError], None], *, returns: bool
) -> Iterator[tuple[int, str]]:
    """Encodings in which a newline is not one byte are decoded as a stream."""
    number = 0
    try:
        with io.TextIOWrapper(file, encoding=encoding, newline=None if returns else "\n") as text:
            for number, line in _pieces(path, text.readline, bad):
                yield number, (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r\n")
    except UnicodeError as error:
        raise UserError(f"{path}, after line {number}: not {encoding}: {error}") from None


def _refuse_binary(path: Path, start: bytes, *, wide: bool) -> None:
    for magic, what in MAGIC.items():
        if start.startswith(magic):
            raise UserError(f"{path}: not a text table but {what}")
    if b"\0" in start and not wide:
        raise UserError(f"{path}: a binary file, not text (a zero byte at byte {start.index(0) + 1})")
