"""A folder that a request has for its files, made when the first one comes: most requests have none."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory


class Scratch(AbstractContextManager["Scratch"]):
    """Gone at the end of the request, with all that is in it."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None

    def file(self, name: str) -> Path:
        """Where a file of this name goes."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="seq2see-", ignore_cleanup_errors=True)
        return Path(self._folder.name) / name

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()
