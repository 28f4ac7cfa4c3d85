"""Files to write: whole or not at all, text compressed or not."""

from __future__ import annotations

import errno
import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from seq2see.errors import UserError


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
