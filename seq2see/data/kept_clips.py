"""Decoded clips kept in memory: decoding costs more than all the rest of reading a small clip again."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from seq2see.data.videos import Clip

MOST = 2 << 30
"""Bytes of clips that are kept, however much memory there is."""


class KeptClips:
    """The clips read last, up to so many bytes of them; a file that has changed since is read anew."""

    def __init__(self, most: int):
        self.most, self.bytes = most, 0
        self._clips: OrderedDict[str, Clip] = OrderedDict()
        self._lock = Lock()

    def get(self, path: str, how: str, read: Callable[[], Clip]) -> Clip:
        """The clip of a file read in that way; `read` is called where it is not kept."""
        stamp = _stamp(path)
        key = f"{stamp}|{how}"
        with self._lock:
            if key in self._clips:
                self._clips.move_to_end(key)
                return self._clips[key]
        clip = read()
        clip.pixels.flags.writeable = False
        if _stamp(path) != stamp:  # gone or changed while it was read
            return clip
        with self._lock:
            if key not in self._clips:
                self._clips[key] = clip
                self.bytes += clip.nbytes
            while self.bytes > self.most:
                self.bytes -= self._clips.popitem(last=False)[1].nbytes
        return clip


def _stamp(path: str) -> str:
    try:
        found = Path(path).stat()
    except OSError:
        return path
    return f"{Path(path).absolute()}|{found.st_size}|{found.st_mtime_ns}"


def _room() -> int:
    """A quarter of the machine's memory, at most MOST."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        whole = 4 * MOST
    return min(MOST, whole // 4)


KEPT = KeptClips(_room())
"""Of this process: what a first look into the files of a table decodes, training need not decode again."""
