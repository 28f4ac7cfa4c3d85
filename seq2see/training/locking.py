"""One process at a time in a folder that several could write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seq2see.data.locking import LOCK, hold
from seq2see.data.output import unwritable
from seq2see.errors import UserError


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder, or say that another process does. The hold ends with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise unwritable(folder, error) from None
    with file:
        if not hold(file, wait=False):
            raise UserError(f"{folder}: another process is at work there; wait for it, or use --out")
        yield
