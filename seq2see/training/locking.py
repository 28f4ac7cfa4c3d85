"""One process at a time in a folder that several could write to.

The kernel holds the lock on `.lock` and releases it when its owner ends, however it ends: who owns it is never guessed
from a process id. The file says whose it is, for the message alone.
"""

from __future__ import annotations

import json
import os
import socket
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from io import FileIO
from pathlib import Path

from seq2see.data.locking import LOCK, hold
from seq2see.errors import UserError
from seq2see.files import unwritable

LONGEST_OWNER = 1000
"""Bytes of `.lock` that are read for the message."""


class FolderInUse(UserError):
    """Another process, or another thread of this one, writes to the folder."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder, making it where there is none; FolderInUse names whoever holds it already.

    Nothing but `.lock` is written, and it is gone afterwards, as is a folder that was made and stayed empty.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _held(folder)
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        yield
    finally:
        if not file.closed:  # in a forked child it is
            with suppress(OSError):
                (folder / LOCK).unlink()
            file.close()
            with suppress(OSError):  # not empty
                for path in made:
                    path.rmdir()


def _held(folder: Path) -> FileIO:
    """The open lock file: the lock lasts until it is closed."""
    path = folder / LOCK
    while True:
        file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")  # not inherited by programs that are started
        if not hold(file, wait=False):
            with file:
                raise FolderInUse(
                    f"{folder}: in use by {_owner(file)}; wait until it has ended, or use another folder (--out)"
                )
        if _is_at(file, path):
            break
        file.close()  # the last owner removed it while we waited our turn
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(_close, weakref.ref(file)))
    file.truncate(0)
    now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now}).encode())
    return file


def _is_at(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _close(reference: weakref.ref[FileIO]) -> None:
    """In a forked child: the lock is its parent's, and must not outlive it there."""
    file = reference()
    if file is not None:
        file.close()


def _owner(file: FileIO) -> str:
    """Who holds the lock, by what it wrote there; anyone could have written it."""
    try:
        written = json.loads(file.read(LONGEST_OWNER) or b"")
        pid, host, since = (str(written[key]) for key in ("pid", "host", "since"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    found = f"process {pid} on {host}, since {since}"
    return found if found.isprintable() else "another process"
