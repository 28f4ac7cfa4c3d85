"""A few processes that decode files for a server (`decoder_process.py`), each with a thread that waits for it.

A process that takes too long is killed, one that dies is replaced, one that has grown is replaced so that its memory
comes back: whatever a file does, its sender gets an error and everybody else the next process. Together they never take
more than processes x memory.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from math import prod
from time import monotonic
from typing import Any, BinaryIO

import numpy as np

from seq2see.data.decoder_process import ARRAYS, LETTERS, Arrays, receive, send
from seq2see.data.media_files import Job, MediaError
from seq2see.errors import UserError

PROCESSES, MEMORY, SECONDS, WAITING, RESULT = 2, 1_500_000_000, 30.0, 512, 500_000_000
"""The usual size of a pool: processes, bytes of memory of each, seconds for a file, files that may wait, bytes of what
is made of a file."""

START = 60.0
"""Seconds until a process must be ready."""
FAILED = 60.0
"""Seconds for which it counts that a process could not be started; then the next file is a new attempt."""
GROWN = 256_000_000
"""Bytes of memory with which a process that has done its work is replaced."""
DTYPES = ("uint8", "int64", "float32", "float64")
COMMAND = (sys.executable, "-P", "-m", "seq2see.data.decoder_process")
CLOSING, STOPPED = "the server is closing", "was no longer waited for while it was decoded"
KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "LC_ALL", "TZ")
"""What a process inherits of the environment; a server's may hold its token."""


class Unavailable(UserError):
    """Nothing can be decoded at present: too much waits, or no process can be started."""


class Decoding(Future[Arrays]):
    """What a file is decoded to, once it is; stopped: nobody waits for it any longer; since: when it came."""

    def __init__(self, job: Job):
        super().__init__()
        self.job, self.stopped = job, False
        self.since = monotonic()


class DecoderPool:
    """Decodes files in the order in which they come; threads and processes start when the first one does."""

    def __init__(
        self,
        *,
        processes: int = PROCESSES,
        memory: int = MEMORY,
        seconds: float = SECONDS,
        waiting: int = WAITING,
        result: int = RESULT,
        command: Sequence[str] = COMMAND,
    ):
        self.processes, self.most_waiting = processes, waiting
        self._failure, self._failed = "", -FAILED
        self._memory, self._seconds, self._result, self._command = memory, seconds, result, command
        self._queue: deque[Decoding] = deque()
        self._running: dict[Decoding, _Process | None] = {}  # None: one is being started
        self._processes: set[_Process] = set()  # all there are, those that are being started as well
        self._threads: set[threading.Thread] = set()  # those that are alive
        self._idle = 0
        self._changed = threading.Condition()
        self._closed = False
        self.answered = monotonic()
        """When a decoder last answered, be it that a file is damaged."""

    @property
    def failure(self) -> str | None:
        """Why nothing could be decoded, where that was tried lately."""
        return self._failure if monotonic() - self._failed < FAILED else None

    @property
    def stalled(self) -> float:
        """Seconds for which files have been here without an answer to any; 0 where a process is free."""
        with self._changed:
            if len(self._running) < self.processes:
                return 0.0
            oldest = min(one.since for one in (*self._queue, *self._running))
        return monotonic() - max(oldest, self.answered)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return len(self._running)

    def submit(self, jobs: Sequence[Job]) -> list[Decoding]:
        """What these files are decoded to, in their order; all of them are taken, or none."""
        decodings = [Decoding(job) for job in jobs]
        with self._changed:
            if self._closed:
                raise Unavailable(CLOSING)
            if self._queue and len(self._queue) + len(decodings) > self.most_waiting:
                message = f"too many files wait to be decoded (allowed: {self.most_waiting:,}); try again in a moment"
                raise Unavailable(message)
            self._start_threads(len(self._queue) + len(decodings) - self._idle)
            self._queue.extend(decodings)
            self._changed.notify_all()
        return decodings

    def _start_threads(self, wanted: int) -> None:
        """So many, as far as there may be more; an Unavailable where there is none at all. The lock is held."""
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

    def stop(self, decodings: Iterable[Decoding]) -> None:
        """Nobody waits for these any longer: those in the queue leave it, those under way are broken off."""
        with self._changed:
            for decoding in decodings:
                if decoding in self._running:
                    self._stop(decoding)
                elif decoding.cancel():
                    with contextlib.suppress(ValueError):
                        self._queue.remove(decoding)

    def close(self) -> None:
        """End all processes; whoever waits is told."""
        with self._changed:
            self._closed = True
            waiting = [one for one in self._queue if one.set_running_or_notify_cancel()]
            self._queue.clear()
            for decoding in self._running:
                decoding.stopped = True
            for process in self._processes:
                process.kill("stopped")
            threads = list(self._threads)
            self._changed.notify_all()
        for decoding in waiting:
            decoding.set_exception(Unavailable(CLOSING))
        for thread in threads:
            thread.join()

    def _stop(self, decoding: Decoding) -> None:
        """One that is under way; the lock is held."""
        decoding.stopped = True
        process = self._running[decoding]
        if process is not None:
            process.kill("stopped")

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
        """The oldest that waits; None once closed."""
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
        """Settle one file, whatever happens; the process for the next one."""
        arrays, failure = Arrays(), None
        try:
            process = self._usable(process)
            if process is None:
                process = self._started()
            with self._changed:
                self._running[decoding] = process
                if decoding.stopped:
                    raise MediaError(STOPPED)
            arrays = process.decode(decoding.job)
        except UserError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - no fault of the file's, and the next one is to be decoded
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
        return self._usable(process)  # now, not with the next file: what it has grown to comes back

    def _started(self) -> _Process:
        """A process that is ready; an Unavailable where none can be started."""
        process: _Process | None = None
        try:
            process = _Process(self._command, self._memory, self._seconds, self._result)
            with self._changed:
                self._processes.add(process)
                if self._closed:
                    raise Unavailable(CLOSING)
            process.wait_until_ready()
        except Exception as error:  # noqa: BLE001 - a system without memory, threads or files may raise anything
            if process is not None:
                self._end(process)
            self._fail(f"no decoder process can be started: {error}")
            raise self._unavailable() from None
        self._failed = -FAILED
        return process

    def _usable(self, process: _Process | None) -> _Process | None:
        """A process that is still of use; any other is ended."""
        if process is None or process.usable:
            return process
        self._end(process)
        return None

    def _end(self, process: _Process) -> None:
        process.end()
        with self._changed:
            self._processes.discard(process)

    def _fail(self, message: str) -> None:
        self._failure, self._failed = message, monotonic()

    def _unavailable(self) -> Unavailable:
        return Unavailable(f"files cannot be decoded at present: {self._failure}")


class _Process:
    """One process, used by one thread; `kill` may come from any. answered: whether it answered to its last file."""

    def __init__(self, command: Sequence[str], memory: int, seconds: float, result: int):
        self._seconds, self._memory, self._result = seconds, memory, result
        self._killed: str | None = None
        self._grown = self.answered = False
        self._popen = subprocess.Popen(
            [*command, str(memory), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is the server's to hear
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._jobs: BinaryIO = self._popen.stdin  # type: ignore[assignment]
        self._answers: BinaryIO = self._popen.stdout  # type: ignore[assignment]

    def wait_until_ready(self) -> None:
        """An error where it is not in time."""
        with self._deadline(START):
            ready = receive(self._answers)
        if not ready:
            self.end()
            raise OSError(f"it ended with code {self._popen.returncode}")

    @property
    def usable(self) -> bool:
        return self._killed is None and not self._grown and self._popen.poll() is None

    def decode(self, job: Job) -> Arrays:
        """The arrays that a file is decoded to, or a MediaError; afterwards the process may not be usable."""
        settings = job.settings.model_dump(mode="json", exclude={"column", "encoder"})
        self.answered = False
        try:
            with self._deadline(self._seconds):
                send(self._jobs, {"kind": job.settings.kind, "path": job.path, "settings": settings})
                answer = receive(self._answers)
                if answer is None:
                    raise EOFError
                self.answered = True
                self._grown = answer.get("resident", 0) > GROWN
                if "problem" not in answer:
                    self._check(answer["arrays"], ARRAYS[job.settings.kind])
                    return [self._array(one) for one in answer["arrays"]]
        except MediaError:  # a result that is too large, and not read
            self.kill("ended")
            raise
        except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError):
            raise MediaError(self._broken()) from None
        message = str(answer["problem"])[:LETTERS]
        raise MediaError(message) if answer.get("media") else UserError(message)

    def kill(self, reason: str) -> None:
        """reason: 'deadline', 'stopped', or 'ended'."""
        if self._killed is None:
            self._killed = reason
        self._popen.kill()

    def end(self) -> None:
        self.kill("ended")
        self._popen.wait()
        for stream in (self._jobs, self._answers):
            with contextlib.suppress(OSError):  # bytes that it did not read any more
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
            timer.join()  # from here on it is certain whether it came to that

    def _check(self, announced: Sequence[dict[str, Any]], number: int) -> None:
        """Nothing of what is announced is believed before it has been checked. number: of arrays that are expected."""
        if len(announced) != number:
            raise ValueError(f"{len(announced)} arrays instead of {number}")
        size = 0
        for one in announced:
            dtype, shape = one["dtype"], one["shape"]
            if dtype not in DTYPES or len(shape) > 4 or not all(isinstance(side, int) and side >= 0 for side in shape):
                raise ValueError(f"an array of {dtype} {shape}")
            size += prod(shape) * np.dtype(dtype).itemsize
        if size > self._result:
            raise MediaError(f"takes more than {self._result // 1_000_000:,} MB once it is decoded")

    def _array(self, announced: dict[str, Any]) -> Any:
        """An array from the stream."""
        dtype, shape = announced["dtype"], announced["shape"]
        array = np.empty(prod(shape), dtype=dtype)
        rest = memoryview(array.view(np.uint8))  # type: ignore[arg-type]
        while len(rest):
            number = self._answers.readinto(rest)  # type: ignore[attr-defined]
            if not number:
                raise EOFError
            rest = rest[number:]
        return array.reshape(shape)

    def _broken(self) -> str:
        """Why there is no answer."""
        reason = self._killed
        self.kill("ended")
        if reason == "deadline":
            return f"takes longer than {self._seconds:g} s to decode"
        if reason is not None:
            return STOPPED
        return f"its decoder broke down: it is damaged, or takes more than {self._memory // 1_000_000:,} MB to decode"


def _environment() -> dict[str, str]:
    """Modules are found where this process finds them; a decoder has one thread."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(one for one in sys.path if one)
    return kept | one_thread | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
