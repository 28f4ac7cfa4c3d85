"""A pool of processes that decode files for a server (`decoder_process.py`), each with a thread that waits for it.

A process that takes too long is killed, one that dies is replaced, and so is one that has grown, to free its memory.
Whatever a file does, its sender gets an error and everybody else the next process. Together the processes take at most
processes x memory.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from math import prod
from time import monotonic
from typing import Any, BinaryIO

import numpy as np

from seq2see.data.decoder_process import MESSAGE_LENGTH, Arrays, import_name, receive, send
from seq2see.data.media_files import Job, MediaError, MediaSettings
from seq2see.errors import UserError

START_SECONDS = 60.0
"""Seconds in which a process must be ready."""
FAILURE_SECONDS = 60.0
"""Seconds for which a process that could not be started is reported as a problem."""
GROWN = 256_000_000
"""Bytes by which an idle process may have grown; beyond them it is replaced."""
DTYPES = ("uint8", "int64", "float32", "float64")
COMMAND = (sys.executable, "-P", "-m", "seq2see.data.decoder_process")
CLOSING, CANCELLED = "the server is closing", "was no longer waited for while it was decoded"
ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "LC_ALL", "TZ")
"""Variables that a process inherits; others may hold secrets, such as the server's token."""


class Unavailable(UserError):
    """Nothing can be decoded at present: the queue is full, or no process can be started."""


class _KilledAtStart(OSError):
    """A process was killed by somebody else before it was ready."""


class Decoding(Future[Arrays]):
    """The arrays of a file to come; abandoned: nobody waits for it any longer; since: when it was submitted."""

    def __init__(self, job: Job):
        super().__init__()
        self.job, self.abandoned = job, False
        self.since = monotonic()


class DecoderPool:
    """Decodes files in the order in which they come; threads and processes start with the first one.

    memory: bytes of each process; seconds: for one file; queue_size: files that may wait; result_bytes: of one file's
    arrays. A process knows the kinds of files that were added before it was started; one that lacks the kind of a file
    is replaced.
    """

    def __init__(
        self,
        *,
        processes: int,
        memory: int,
        seconds: float,
        queue_size: int,
        result_bytes: int,
        command: Sequence[str] = COMMAND,
    ):
        self.processes, self.queue_size = processes, queue_size
        self._failure, self._failed_at = "", -FAILURE_SECONDS
        self._memory, self._seconds, self._result_bytes, self._command = memory, seconds, result_bytes, command
        self._kinds: dict[type[MediaSettings], str] = {}  # by which name a process imports each
        self._queue: deque[Decoding] = deque()
        self._running: dict[Decoding, _Process | None] = {}  # None: its process is being started
        self._processes: set[_Process] = set()  # including those that are being started
        self._threads: set[threading.Thread] = set()  # those that are alive
        self._idle = 0
        self._changed = threading.Condition()
        self._closed = False
        self.answered = monotonic()
        """When a process last answered, even if only that a file is damaged."""

    @property
    def failure(self) -> str | None:
        """Why no process could be started, within the last FAILURE_SECONDS."""
        return self._failure if monotonic() - self._failed_at < FAILURE_SECONDS else None

    @property
    def stalled(self) -> float:
        """Seconds for which files wait and no process has answered; 0 where a process is free."""
        with self._changed:
            if len(self._running) < self.processes:
                return 0.0
            oldest = min(decoding.since for decoding in (*self._queue, *self._running))
        return monotonic() - max(oldest, self.answered)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return len(self._running)

    def add_kind(self, kind: type[MediaSettings]) -> None:
        """Make the settings class of a kind of files known to processes; a UserError where they cannot import it."""
        if kind not in self._kinds:
            name = import_name(kind)
            with self._changed:
                self._kinds[kind] = name

    def submit(self, jobs: Sequence[Job]) -> list[Decoding]:
        """Queue all of these files, or refuse all of them."""
        for job in jobs:
            self.add_kind(type(job.settings))
        decodings = [Decoding(job) for job in jobs]
        with self._changed:
            if self._closed:
                raise Unavailable(CLOSING)
            if self._queue and len(self._queue) + len(decodings) > self.queue_size:
                message = f"too many files wait to be decoded (allowed: {self.queue_size:,}); try again in a moment"
                raise Unavailable(message)
            self._start_threads(len(self._queue) + len(decodings) - self._idle)
            self._queue.extend(decodings)
            self._changed.notify_all()
        return decodings

    def _start_threads(self, wanted: int) -> None:
        """Start up to `wanted` threads; Unavailable where there is none at all. The lock is held."""
        for _ in range(min(wanted, self.processes - len(self._threads))):
            thread = threading.Thread(target=self._work, name="seq2see-decoding", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                if self._threads:
                    return
                self._fail(f"no thread can be started: {error}")
                raise self._unavailable() from None
            self._threads.add(thread)

    def cancel(self, decodings: Iterable[Decoding]) -> None:
        """Take files out of the queue, and kill the processes that decode them."""
        with self._changed:
            for decoding in decodings:
                if decoding in self._running:
                    self._abandon(decoding)
                elif decoding.cancel():
                    with contextlib.suppress(ValueError):
                        self._queue.remove(decoding)

    def close(self) -> None:
        """End all processes; files that wait fail with Unavailable."""
        with self._changed:
            self._closed = True
            waiting = [decoding for decoding in self._queue if decoding.set_running_or_notify_cancel()]
            self._queue.clear()
            for decoding in self._running:
                decoding.abandoned = True
            for process in self._processes:
                process.kill("cancelled")
            threads = list(self._threads)
            self._changed.notify_all()
        for decoding in waiting:
            decoding.set_exception(Unavailable(CLOSING))
        for thread in threads:
            thread.join()

    def _abandon(self, decoding: Decoding) -> None:
        """Cancel a file that is being decoded; the lock is held."""
        decoding.abandoned = True
        process = self._running[decoding]
        if process is not None:
            process.kill("cancelled")

    def _work(self) -> None:
        process: _Process | None = None
        try:
            while (decoding := self._next()) is not None:
                process = self._decode(decoding, process)
        finally:
            if process is not None:
                self._end(process)
            with self._changed:
                self._threads.discard(threading.current_thread())

    def _next(self) -> Decoding | None:
        """The oldest file in the queue; None once closed."""
        with self._changed:
            while True:
                self._idle += 1
                self._changed.wait_for(lambda: self._queue or self._closed)
                self._idle -= 1
                if self._closed:
                    return None
                decoding = self._queue.popleft()
                if decoding.set_running_or_notify_cancel():
                    self._running[decoding] = None
                    return decoding

    def _decode(self, decoding: Decoding, process: _Process | None) -> _Process | None:
        """Decode one file with this process or a new one, and set its result; the process for the next file."""
        arrays, failure = Arrays(), None
        try:
            process = self._usable(process, type(decoding.job.settings))
            if process is None:
                process = self._start()
            with self._changed:
                self._running[decoding] = process
                if decoding.abandoned:
                    raise MediaError(CANCELLED)
            arrays = process.decode(decoding.job)
        except UserError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - not the file's fault, and the next one must be decoded
            self._fail(f"a decoder process cannot be used: {error}")
            failure = self._unavailable()
            if process is not None:
                process.kill("ended")
        with self._changed:
            del self._running[decoding]
            if process is not None and process.answered:
                self.answered = monotonic()
        if failure is not None:
            decoding.set_exception(Unavailable(CLOSING) if self._closed else failure)
        else:
            decoding.set_result(arrays)
        return self._usable(process)  # now, not with the next file: a grown process frees its memory

    def _start(self, again: bool = True) -> _Process:
        """A process that is ready; Unavailable where none can be started. again: start another where somebody kills it
        (an administrator, or the system for its memory)."""
        process: _Process | None = None
        try:
            with self._changed:
                kinds = dict(self._kinds)
            process = _Process(self._command, kinds, self._memory, self._seconds, self._result_bytes)
            with self._changed:
                self._processes.add(process)
                if self._closed:
                    raise Unavailable(CLOSING)
            process.wait_until_ready()
        except Exception as error:  # noqa: BLE001 - a system without memory, threads or files may raise anything
            if process is not None:
                self._end(process)
            if again and isinstance(error, _KilledAtStart):
                return self._start(again=False)
            self._fail(f"no decoder process can be started: {error}")
            raise self._unavailable() from None
        self._failed_at = -FAILURE_SECONDS
        return process

    def _usable(self, process: _Process | None, kind: type[MediaSettings] | None = None) -> _Process | None:
        """The process if it can be used again, for files of that kind; otherwise it is ended."""
        if process is None or (process.usable and (kind is None or kind in process.kinds)):
            return process
        self._end(process)
        return None

    def _end(self, process: _Process) -> None:
        process.end()
        with self._changed:
            self._processes.discard(process)

    def _fail(self, message: str) -> None:
        self._failure, self._failed_at = message, monotonic()

    def _unavailable(self) -> Unavailable:
        return Unavailable(f"files cannot be decoded at present: {self._failure}")


class _Process:
    """One process, used by one thread; any thread may `kill` it. kinds: the names of the settings classes it knows;
    answered: whether it answered for its last file."""

    def __init__(
        self,
        command: Sequence[str],
        kinds: Mapping[type[MediaSettings], str],
        memory: int,
        seconds: float,
        result_bytes: int,
    ):
        self.kinds = kinds
        self._seconds, self._memory, self._result_bytes = seconds, memory, result_bytes
        self._killed: str | None = None
        self._grown = self.answered = False
        self._resident = 0  # bytes, before it decodes anything
        self._popen = subprocess.Popen(
            [*command, str(memory), str(seconds), *kinds.values()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl-C reaches the server alone
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._jobs: BinaryIO = self._popen.stdin  # type: ignore[assignment]
        self._answers: BinaryIO = self._popen.stdout  # type: ignore[assignment]

    def wait_until_ready(self) -> None:
        """Wait for its first message; an error where it ends or is too slow."""
        with self._deadline(START_SECONDS):
            ready = receive(self._answers)
        if not ready or not ready.get("ready"):
            code = 0
            if ready is None and self._killed is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = self._popen.wait(1)
            self.end()
            if code < 0:
                raise _KilledAtStart(f"it was killed by signal {-code}")
            raise OSError((ready or {}).get("problem") or f"it ended with code {self._popen.returncode}")
        self._resident = ready.get("resident", 0)

    @property
    def usable(self) -> bool:
        return self._killed is None and not self._grown and self._popen.poll() is None

    def decode(self, job: Job) -> Arrays:
        """The arrays of a file, or a MediaError; afterwards the process may not be usable."""
        settings, preview = map(_written, (job.settings, job.preview))
        kind, number = self.kinds[type(job.settings)], job.settings.decoded_arrays * len(job.keys)
        self.answered = False
        try:
            with self._deadline(self._seconds):
                send(self._jobs, {"kind": kind, "path": job.path, "settings": settings, "preview": preview})
                answer = receive(self._answers)
                if answer is None:
                    raise EOFError
                self.answered = True
                self._grown = answer.get("resident", 0) > self._resident + GROWN
                if "problem" not in answer:
                    self._check_header(answer["arrays"], number)
                    return [self._read_array(header) for header in answer["arrays"]]
        except MediaError:  # a result that is too large is not read
            self.kill("ended")
            raise
        except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError):
            raise MediaError(self._why_broken()) from None
        message = str(answer["problem"])[:MESSAGE_LENGTH]
        raise MediaError(message) if answer.get("media") else UserError(message)

    def kill(self, reason: str) -> None:
        """reason: 'deadline', 'cancelled' or 'ended'."""
        if self._killed is None:
            self._killed = reason
        self._popen.kill()

    def end(self) -> None:
        self.kill("ended")
        self._popen.wait()
        for stream in (self._jobs, self._answers):
            with contextlib.suppress(OSError):  # bytes that the process did not read
                stream.close()

    @contextlib.contextmanager
    def _deadline(self, seconds: float) -> Any:
        timer = threading.Timer(seconds, self.kill, ["deadline"])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # from here on the process is killed or it is not

    def _check_header(self, headers: Sequence[dict[str, Any]], number: int) -> None:
        """Check what a process, which a file may control, says of its arrays. number: of arrays that are expected."""
        if len(headers) != number:
            raise ValueError(f"{len(headers)} arrays instead of {number}")
        size = 0
        for header in headers:
            dtype, shape = header["dtype"], header["shape"]
            if dtype not in DTYPES or len(shape) > 4 or not all(isinstance(side, int) and side >= 0 for side in shape):
                raise ValueError(f"an array of {dtype} {shape}")
            size += prod(shape) * np.dtype(dtype).itemsize
        if size > self._result_bytes:
            raise MediaError(f"takes more than {self._result_bytes // 1_000_000:,} MB once it is decoded")

    def _read_array(self, header: dict[str, Any]) -> Any:
        """The next array of the stream."""
        dtype, shape = header["dtype"], header["shape"]
        array = np.empty(prod(shape), dtype=dtype)
        rest = memoryview(array.view(np.uint8))  # type: ignore[arg-type]
        while len(rest):
            number = self._answers.readinto(rest)  # type: ignore[attr-defined]
            if not number:
                raise EOFError
            rest = rest[number:]
        return array.reshape(shape)

    def _why_broken(self) -> str:
        """Why a file has no answer."""
        reason = self._killed
        self.kill("ended")
        if reason == "deadline":
            return f"takes longer than {self._seconds:g} s to decode"
        if reason is not None:
            return CANCELLED
        return f"its decoder broke down: it is damaged, or takes more than {self._memory // 1_000_000:,} MB to decode"


def _written(settings: MediaSettings | None) -> dict[str, Any] | None:
    return None if settings is None else settings.model_dump(mode="json", exclude={"column", "encoder"})


def _environment() -> dict[str, str]:
    """The environment of a process: the same modules as here, one thread."""
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, sys.path))
    return kept | one_thread | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
