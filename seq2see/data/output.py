"""Text files to write, compressed or not."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


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
