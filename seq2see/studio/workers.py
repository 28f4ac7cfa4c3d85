"""Several worker processes that accept from one socket: started, watched, replaced when one dies, ended together.

uvicorn has a supervisor of its own. It starts a worker that cannot load its model again for ever, tells nobody when all
are ready, and ends workers on SIGHUP, which here loads models again; so this one is ours, and short.
"""

from __future__ import annotations

import logging
import mmap
import multiprocessing
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, Protocol

from seq2see.errors import UserError
from seq2see.studio.server import has_terminal
from seq2see.threads import cores

LOG = logging.getLogger("seq2see.studio")
STEADY = 30.0
"""Seconds after which a worker that dies is replaced at once; before, later each time."""
LONGEST_PAUSE = 30.0
WORKERS_PER_CORE = 4
SPARE = 15.0
"""Seconds beyond those for draining, after which workers that do not end are killed."""


@dataclass(frozen=True)
class WorkerPlace:
    """One of several workers. folder: of the files that they share."""

    index: int
    count: int
    folder: Path


class Work(Protocol):
    """What a worker does: serve, and call `ready` with what the supervisor shall say once it can."""

    def __call__(self, place: WorkerPlace, listening: socket.socket, ready: Callable[[str], None]) -> None: ...


@dataclass
class _Worker:
    process: Any
    reports: Connection
    since: float
    ready: bool = False


class Supervisor:
    """Runs `work` in `count` processes. work: can be pickled; on_exit: called with the id of a process that has ended;
    drain: seconds that workers may take to end."""

    def __init__(
        self,
        work: Work,
        listening: socket.socket,
        *,
        count: int,
        folder: Path,
        drain: float,
        on_exit: Callable[[int], None] = lambda _: None,
    ):
        self._work, self._listening, self._on_exit = work, listening, on_exit
        self._count, self._folder, self._drain = count, folder, drain
        self._workers: dict[int, _Worker] = {}
        self._starts: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._context = multiprocessing.get_context("spawn")
        self._signals: list[int] = []
        self._had_terminal = has_terminal()

    def run(self, started: Callable[[str], None]) -> None:
        """Until SIGTERM, or SIGINT, which is raised as a KeyboardInterrupt at the end. A UserError where a worker
        cannot start at first; one that dies later is replaced."""
        with self._captured_signals() as wake:
            try:
                for index in range(self._count):
                    self._start(index)
                messages = self._wait_until_ready(wake)
                if messages:
                    started(messages[0])
                while not self._ending:
                    self._step(wake)
            finally:
                self._end()
        if signal.SIGINT in self._signals:
            raise KeyboardInterrupt

    @property
    def _ending(self) -> bool:
        return any(number != getattr(signal, "SIGHUP", None) for number in self._signals)

    def _start(self, index: int) -> None:
        reports, sender = self._context.Pipe(duplex=False)
        place = WorkerPlace(index, self._count, self._folder)
        process = self._context.Process(
            target=_work_in_process, args=(self._work, place, self._listening, sender), name=f"seq2see-worker-{index}"
        )
        process.start()
        sender.close()
        self._workers[index] = _Worker(process, reports, monotonic())

    def _wait_until_ready(self, wake: socket.socket) -> list[str]:
        """What the workers say when all of them serve; nothing where a signal ends the start."""
        messages: dict[int, str] = {}
        while len(messages) < self._count and not self._ending:
            waiting = {worker.reports: index for index, worker in self._workers.items() if index not in messages}
            for source in wait([*waiting, wake]):
                if source is wake:
                    self._read_signals(wake)
                    continue
                index = waiting[source]  # type: ignore[index]
                kind, message = self._report(index)
                if kind != "ready":
                    raise UserError(message)
                messages[index] = message
        return [] if self._ending else [messages[index] for index in range(self._count)]

    def _report(self, index: int) -> tuple[str, str]:
        worker = self._workers[index]
        try:
            kind, message = worker.reports.recv()
        except (EOFError, OSError):
            worker.process.join(1)
            return "dead", f"worker {index} ended before it could serve (exit code {worker.process.exitcode})"
        worker.ready = kind == "ready"
        return kind, message

    def _step(self, wake: socket.socket) -> None:
        """Wait for a signal or the end of a worker; replace those that are due."""
        sentinels = {worker.process.sentinel: index for index, worker in self._workers.items()}
        starting = {worker.reports: index for index, worker in self._workers.items() if not worker.ready}
        due = min(self._starts.values(), default=monotonic() + 60)
        for source in wait([*sentinels, *starting, wake], max(due - monotonic(), 0)):
            if source is wake:
                self._read_signals(wake)
            elif source in starting:
                index = starting[source]
                if index not in self._workers:  # it has died as well, which was seen first
                    continue
                kind, message = self._report(index)
                if kind == "ready":
                    LOG.info("worker %d serves again", index)
                elif kind == "failed":
                    LOG.warning("worker %d cannot start: %s", index, message)
                self._workers[index].ready = True  # it reports only once
            elif (index := sentinels[source]) in self._workers:
                self._handle_exit(index)
        for index in [index for index, at in self._starts.items() if at <= monotonic()]:
            del self._starts[index]
            if not self._ending:
                self._start(index)

    def _handle_exit(self, index: int) -> None:
        """Note a worker that has died, and when the next one takes its place."""
        worker = self._workers.pop(index)
        worker.process.join()
        worker.reports.close()
        self._on_exit(worker.process.pid)
        steady = monotonic() - worker.since >= STEADY
        pause = 0.0 if steady else self._pauses.get(index, 0.0)
        self._pauses[index] = min(max(2 * pause, 1.0), LONGEST_PAUSE)
        self._starts[index] = monotonic() + pause
        LOG.warning("worker %d has died (exit code %s) and is replaced", index, worker.process.exitcode)

    def _end(self) -> None:
        """End all workers: those that serve drain, unless Ctrl-C was pressed."""
        number = signal.SIGINT if signal.SIGINT in self._signals else signal.SIGTERM
        self._send(number)
        deadline = monotonic() + self._drain + SPARE
        seen = len(self._signals)
        for worker in self._workers.values():
            while worker.process.is_alive() and monotonic() < deadline:
                worker.process.join(0.2)
                for again in self._signals[seen:]:  # who cannot wait asks twice
                    seen += 1
                    self._send(again)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _send(self, number: int) -> None:
        for worker in self._workers.values():
            with suppress(ProcessLookupError):
                if worker.process.is_alive():
                    os.kill(worker.process.pid, number)

    def _read_signals(self, wake: socket.socket) -> None:
        with suppress(BlockingIOError):
            wake.recv(4096)
        while signal.SIGHUP in self._signals:
            self._signals.remove(signal.SIGHUP)
            if self._had_terminal and not has_terminal():
                self._signals.append(signal.SIGTERM)  # the terminal was closed
            else:
                self._send(signal.SIGHUP)

    @contextmanager
    def _captured_signals(self) -> Iterator[socket.socket]:
        """Signals are noted in `_signals`; the socket can be read then."""
        wake, sender = socket.socketpair()
        for end in (wake, sender):
            end.setblocking(False)

        def note(number: int, frame: FrameType | None) -> None:
            self._signals.append(number)

        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before: Mapping[int, Any] = {number: signal.signal(number, note) for number in numbers}
        descriptor = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield wake
        finally:
            signal.set_wakeup_fd(descriptor)
            for number, handler in before.items():
                signal.signal(number, handler)
            wake.close()
            sender.close()


def _work_in_process(work: Work, place: WorkerPlace, listening: socket.socket, reports: Connection) -> None:
    """The beginning of a worker's process."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # models are loaded just now; later the reloader takes it
    os.setpgid(0, 0)  # Ctrl-C reaches the supervisor alone, which passes it on
    threading.Thread(target=_end_with_parent, name="seq2see-parent", daemon=True).start()

    def ready(message: str) -> None:
        reports.send(("ready", message))
        reports.close()

    try:
        work(place, listening, ready)
    except UserError as error:
        if not reports.closed:
            reports.send(("failed", str(error)))
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None


def _end_with_parent() -> None:
    """Drain where the supervisor was killed: nobody else would end this process."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def check_workers(count: int) -> None:
    """Refuse a number of workers that cannot be, or that the machine has no cores for."""
    most = WORKERS_PER_CORE * cores()
    if not 1 <= count <= most:
        raise UserError(
            f"--workers {count}: each holds all models; allowed: 1 to {most}, {WORKERS_PER_CORE} for each core"
        )
    if count > 1 and not hasattr(signal, "SIGHUP"):
        raise UserError(f"--workers {count}: allowed: 1 on this system, which has no signals for several")


# ---------------------------------------------------------------- what workers share


class ReloadBoard:
    """Numbers that worker processes share: how often each model was to be loaded again, up to which of these times each
    worker has tried to, and which of them was the last that it succeeded in.

    Each number has one writer at a time, and a reader that is late reads the next one."""

    NUMBER = struct.Struct("@Q")

    def __init__(self, path: Path, models: int, worker: int, workers: int):
        self._models, self._worker, self.workers = models, worker, workers
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self.size(models, workers))
        for model in range(models):
            self.set_tried(model, self.wanted(model), loaded=True)  # this process loads what there is now

    @classmethod
    def size(cls, models: int, workers: int) -> int:
        return cls.NUMBER.size * models * (2 * workers + 1)

    @classmethod
    def create(cls, path: Path, models: int, workers: int) -> None:
        path.write_bytes(bytes(cls.size(models, workers)))

    def wanted(self, model: int) -> int:
        return self._get(model)

    def announce(self, model: int) -> int:
        """Have all other workers load a model again, as this one has; the number of the time."""
        number = self.wanted(model) + 1
        self._put(model, number)
        self.set_tried(model, number, loaded=True)
        return number

    def tried(self, model: int) -> int:
        """The last time that this worker has tried to load a model."""
        return self._get(self._place(model, self._worker))

    def set_tried(self, model: int, number: int, *, loaded: bool) -> None:
        if loaded:  # first: who has tried is asked before who has succeeded
            self._put(self._place(model, self.workers + self._worker), number)
        self._put(self._place(model, self._worker), number)

    def all_tried(self, model: int, number: int) -> bool:
        """Whether no worker is still to load it."""
        return all(self._get(self._place(model, worker)) >= number for worker in range(self.workers))

    def ready(self, model: int, number: int) -> int:
        """Workers that have loaded it."""
        loaded = (self._get(self._place(model, self.workers + worker)) for worker in range(self.workers))
        return sum(last >= number for last in loaded)

    def _place(self, model: int, column: int) -> int:
        return self._models * (1 + column) + model

    def _get(self, place: int) -> int:
        number: int = self.NUMBER.unpack_from(self._memory, place * self.NUMBER.size)[0]
        return number

    def _put(self, place: int, number: int) -> None:
        self.NUMBER.pack_into(self._memory, place * self.NUMBER.size, number)
