"""The lines of a file that grows while it is read, told once each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex


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
        """Lines from number `after` on; from 0 where those before were of another `file`. most: so many at once."""
        with self._lock:
            self._read()
            first = min(after, len(self._lines)) if file is None or file == self._name else 0
            found = self._lines[first:] if most is None else self._lines[first : first + most]
            following = first + len(found)
            return Part(self._name, first, found, following, following == len(self._lines))

    def _begin(self) -> None:
        self._lines: list[bytes] = []
        self._beginning = b""
        self._name, self._inode, self._offset = token_hex(4), 0, 0

    def _read(self) -> None:
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._offset and not self._same(status, file.read(len(self._beginning))):
                    self._begin()
                self._inode = status.st_ino
                file.seek(self._offset)
                content = file.read()
        except OSError:
            if self._offset:
                self._begin()
            return
        whole = content[: content.rfind(b"\n") + 1]
        if whole and not self._offset:
            self._beginning = whole[: whole.index(b"\n") + 1]
        self._offset += len(whole)
        self._lines += filter(self._wanted, whole.splitlines())

    def _same(self, status: os.stat_result, beginning: bytes) -> bool:
        """Whether the file is the one that was read before: numbers of files are used again, first lines are not."""
        return status.st_ino == self._inode and status.st_size >= self._offset and beginning == self._beginning
