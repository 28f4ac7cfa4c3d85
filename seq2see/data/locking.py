"""Files that processes hold in turn, so that one at a time changes what lies beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # systems without it go unguarded
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


def hold(file: IO[Any] | FileIO, *, wait: bool) -> bool:
    """Hold an open file until it is closed or the process ends, however it ends; False where another process does and
    nobody waits for it. File systems that cannot tell go unguarded."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Be alone with a folder among those who ask for it, once the others have done."""
    with (folder / LOCK).open("w") as file:
        hold(file, wait=True)
        yield
