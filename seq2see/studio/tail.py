"""The lines of a file that grows while it is read, told once each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

MOST_READ = 1 << 24
"""Bytes read at once: the rest of a large file comes with the next calls, so that none of them takes long."""
MOST_LINE = 1 << 23
"""Bytes of a line; longer ones are left out."""
MOST_KEPT = 1 << 28
"""Bytes of memory for the lines of a file; those beyond are left out."""
OVERHEAD = 64
"""Bytes of memory that a line takes beside its own."""


@dataclass(frozen=True)
class Part:
    """Whole lines from number `first` on; `file` names the file they are of: one begun anew has another name."""

    file: str
    first: int
    lines: list[bytes]
    following: int
    """The number to ask from next."""
    whole: bool
    """Whether these are all that there are now."""


class Tail:
    """Reads what was appended since it was last asked. A run that is begun anew, or resumed from a checkpoint, writes
    its files anew: whoever has read the old one is then told the new one from its beginning."""

    def __init__(self, path: Path, *, wanted: Callable[[bytes], bool] = bool):
        """wanted: whether a line can be told; those that cannot (damaged by a full disk, say) are left out."""
        self._path, self._lock, self._wanted = path, threading.Lock(), wanted
        self._begin()

    def since(self, after: int, file: str | None = None, *, most: int | None = None) -> Part:
        """Lines from number `after` on; from 0 where those before were of another `file`. most: so many at once.

        Of a file with much more than was read so far not all comes at once: `whole` is then false.
        """
        with self._lock:
            self._read()
            first = min(after, len(self._lines)) if file is None or file == self._name else 0
            found = self._lines[first:] if most is None else self._lines[first : first + most]
            following = first + len(found)
            return Part(self._name, first, found, following, following == len(self._lines) and not self._more)

    def _begin(self) -> None:
        self._lines: list[bytes] = []
        self._beginning = b""
        self._name, self._inode, self._offset = token_hex(4), 0, 0
        self._more, self._in_long_line, self._kept = False, False, 0

    def _read(self) -> None:
        try:
            if not self._path.is_file():  # a pipe would keep us waiting
                raise FileNotFoundError(self._path)
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._offset and not self._same(status, file.read(len(self._beginning))):
                    self._begin()
                self._inode = status.st_ino
                file.seek(self._offset)
                content = file.read(MOST_READ)
        except OSError:
            if self._offset:
                self._begin()
            return
        self._more = len(content) == MOST_READ
        end = content.rfind(b"\n") + 1
        if not end and len(content) > MOST_LINE:  # it is passed over, wherever it may end
            end, self._in_long_line = len(content), True
            self._advance(content, end)
        elif end:
            self._advance(content, end)
            self._keep(content[:end])

    def _advance(self, content: bytes, end: int) -> None:
        if not self._offset:
            newline = content.find(b"\n", 0, MOST_LINE)
            self._beginning = content[: newline + 1 if newline >= 0 else MOST_LINE]
        self._offset += end

    def _keep(self, content: bytes) -> None:
        """Whole lines, the first of which may be the end of one that is too long."""
        lines = content.splitlines()
        for line in lines[1:] if self._in_long_line else lines:
            size = self._kept + len(line) + OVERHEAD
            if len(line) <= MOST_LINE and size <= MOST_KEPT and self._wanted(line):
                self._lines.append(line)
                self._kept = size
        self._in_long_line = False

    def _same(self, status: os.stat_result, beginning: bytes) -> bool:
        """Whether the file is the one that was read before: numbers of files are used again, first lines are not."""
        return status.st_ino == self._inode and status.st_size >= self._offset and beginning == self._beginning
