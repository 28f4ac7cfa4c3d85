"""A folder that a request has for its files, made when the first one comes: most requests have none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO


class Scratch(AbstractContextManager["Scratch"]):
    """Gone at the end of the request, with all that is in it.

    A request whose client hangs up may end while a thread still writes its files. From then on no file is begun, and
    the folder is removed by whoever is the last to close one: the end of a request waits for no thread.
    """

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._open_files, self._closed = 0, False

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """A new file of this name, to be written; its own `name` is its path."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the request has ended: no more files are written")
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="seq2see-", ignore_cleanup_errors=True)
            self._open_files += 1
            path = Path(self._folder.name) / name
        try:
            with path.open("wb") as file:
                yield file
        finally:
            with self._lock:
                self._open_files -= 1
            self._remove()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
        self._remove()

    def _remove(self) -> None:
        """The folder, once nobody needs it."""
        with self._lock:
            folder = self._folder if self._closed and not self._open_files else None
        if folder is not None:
            folder.cleanup()
