"""A lock on a folder, so that one process at a time writes to it.

The kernel holds the lock on the file `.lock` and releases it when its owner ends, however it ends: a process id that
is out of date can block nobody. What the file says about its owner only serves the error message.
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

from seq2see.errors import UserError
from seq2see.files import unwritable

try:
    import fcntl
except ImportError:  # systems without flock go unguarded
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
MOST_OWNER_BYTES = 1000
"""Bytes of `.lock` that are read for the error message."""


class FolderInUse(UserError):
    """Another process, or another thread of this one, holds the lock on the folder."""


@contextmanager
def lock_folder(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock on a folder, which is created where it is missing.

    wait: wait for the current owner; otherwise FolderInUse names it. Afterwards `.lock` is removed, and so is a folder
    that was created here and stayed empty.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _acquire(folder, wait=wait)
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        yield
    finally:
        if not file.closed:  # it is closed in a forked child
            with suppress(OSError):
                (folder / LOCK).unlink()
            file.close()
            with suppress(OSError):  # not empty
                for path in created:
                    path.rmdir()


def _acquire(folder: Path, *, wait: bool) -> FileIO:
    """Open and lock the lock file; the lock lasts until the file is closed."""
    path = folder / LOCK
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # not inherited by programs started later
        except FileNotFoundError:  # its last owner removed the folder, which it had made
            if path.is_symlink():
                raise
            folder.mkdir(parents=True, exist_ok=True)
            continue
        file = FileIO(descriptor, "r+")
        if not _flock(file, wait=wait):
            with file:
                raise FolderInUse(
                    f"{folder}: in use by {_owner(file)}; wait until it has ended, or use another folder (--out)"
                )
        if _is_at(file, path):
            break
        file.close()  # its last owner removed the file before we got the lock
    if not wait and hasattr(os, "register_at_fork"):  # locks that wait are held for moments
        os.register_at_fork(after_in_child=partial(_close, weakref.ref(file)))
    file.truncate(0)
    now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now}).encode())
    return file


def _flock(file: FileIO, *, wait: bool) -> bool:
    """Lock an open file; False where another process holds it and we do not wait.

    File systems that do not support locks go unguarded.
    """
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


def _is_at(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _close(reference: weakref.ref[FileIO]) -> None:
    """Close the file in a forked child: the lock is its parent's and must not outlive it there."""
    file = reference()
    if file is not None:
        file.close()


def _owner(file: FileIO) -> str:
    """Describe the owner by what it wrote into the file, which anyone could have written."""
    try:
        written = json.loads(file.read(MOST_OWNER_BYTES) or b"")
        pid, host, since = (str(written[key]) for key in ("pid", "host", "since"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    owner = f"process {pid} on {host}, since {since}"
    return owner if owner.isprintable() else "another process"
