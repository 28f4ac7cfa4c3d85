"""The command line in processes of its own, which can be killed. They are forked from one that has imported seq2see:
importing torch for each would take longer than the runs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from unittest import mock

PROJECT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 600
"""Seconds after which a child that should have ended is a failure."""
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""Audit events of changes to files; `open` is one where it is for writing."""


@dataclass
class Ended:
    """How a child ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class Child:
    """A command that runs."""

    process: ForkServerProcess
    folder: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def kill(self) -> None:
        self.process.kill()

    def until_paused(self, at: int) -> None:
        """Wait until it is about to change a file for the n-th time."""
        while len(self.said("changes")) < at:
            assert self.process.exitcode is None, self.said("err")
            time.sleep(0.01)

    def go_on(self) -> None:
        (self.folder / "go").touch()

    def wait(self, seconds: float = PATIENCE) -> Ended:
        """Wait for the end. A child that does not end is killed, and fails the test."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.kill()
            raise AssertionError(f"still running after {seconds} s: {self.said('err')}")
        return Ended(self.process.exitcode, self.said("out"), self.said("err"))

    def said(self, name: str) -> str:
        path = self.folder / name
        return path.read_text("utf-8", errors="replace") if path.exists() else ""


class Children:
    """Starts commands. folder: for what they write to stdout and stderr."""

    def __init__(self, folder: Path):
        self._folder, self._number = folder, 0
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.preloaded"])
        path = os.pathsep.join([str(PROJECT), *sys.path])
        with mock.patch.dict(os.environ, PYTHONPATH=path, OMP_NUM_THREADS="1"):
            forkserver.ensure_running()

    def start(
        self, *arguments: object, before: Callable[[], None] | None = None, kill_at: int = 0, pause_at: int = 0
    ) -> Child:
        """before: called in the child first, a function of a module; kill_at, pause_at: before its n-th change of a
        file."""
        self._number += 1
        folder = self._folder / f"child-{self._number}"
        folder.mkdir(parents=True)
        words = [str(argument) for argument in arguments]
        process = self._context.Process(target=_command, args=(words, folder, before, kill_at, pause_at))
        process.start()
        return Child(process, folder)

    def run(self, *arguments: object, before: Callable[[], None] | None = None, kill_at: int = 0) -> Ended:
        return self.start(*arguments, before=before, kill_at=kill_at).wait()

    def changes(self, *arguments: object) -> int:
        """Run a command to its end, and count how often it changes files."""
        child = self.start(*arguments, kill_at=-1)
        assert child.wait().code == 0, child.said("err")
        return len((child.folder / "changes").read_bytes())


def _command(
    words: Sequence[str], folder: Path, before: Callable[[], None] | None, kill_at: int, pause_at: int
) -> None:
    """In the child: the command, with its output in files."""
    from seq2see.cli import main

    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    if before is not None:
        before()
    if kill_at or pause_at:
        _count_changes(folder, kill_at, pause_at)
    main(list(words))


def _count_changes(folder: Path, kill_at: int, pause_at: int) -> None:
    """Write a byte for each change of a file; before one of them this process kills itself, or waits."""
    done, counter = 0, os.open(folder / "changes", os.O_WRONLY | os.O_CREAT, 0o644)

    def hook(event: str, given: tuple[object, ...]) -> None:
        nonlocal done
        writing = event == "open" and isinstance(given[2], int) and bool(given[2] & (os.O_WRONLY | os.O_RDWR))
        if not writing and event not in CHANGES:
            return
        if isinstance(given[0], int) or str(given[0]).startswith(("/dev/", "/proc/")):
            return
        done += 1
        os.write(counter, b".")
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(PATIENCE)  # until the signal arrives
        while done == pause_at and not (folder / "go").exists():
            time.sleep(0.01)

    sys.addaudithook(hook)
