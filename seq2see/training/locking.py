"""One process at a time in a folder that several could write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seq2see.data.output import unwritable
from seq2see.errors import UserError

try:
    import fcntl
except ImportError:  # systems without it go unguarded
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder, or say that another process does. The hold ends with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise unwritable(folder, error) from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{folder}: another process is at work there; wait for it, or use --out") from None
        yield
