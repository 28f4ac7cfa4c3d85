"""The log of requests: one line for each, as JSON or text, and never what clients sent."""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from seq2see.errors import Notice

LogFormat = Literal["json", "text", "none"]
FORMATS: tuple[LogFormat, ...] = ("json", "text", "none")

REQUEST_ID = "x-request-id"
SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
WAITING = 10_000
"""Lines that wait to be written; where whoever reads them is slower than that, lines are dropped and counted."""


def request_id(given: str | None) -> str:
    """The client's id where it is a short plain word, so that it can be found in several logs; otherwise a new one."""
    return given if given is not None and SANE_ID.fullmatch(given) else secrets.token_hex(8)


def timestamp() -> str:
    """2026-11-17T12:00:00.123Z"""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class RequestRecord:
    """What is known of a request at its end. path: the route as the app defines it; model: a served one; bytes: of
    bodies."""

    time: str
    id: str
    method: str
    path: str
    status: int
    milliseconds: float
    model: str | None = None
    rows: int | None = None
    bytes_in: int = 0
    bytes_out: int = 0

    def json(self) -> str:
        return json.dumps({key: value for key, value in asdict(self).items() if value is not None})

    def text(self) -> str:
        model = "" if self.model is None else f" {self.model}"
        rows = "" if self.rows is None else f" rows={self.rows}"
        sizes = f"in={self.bytes_in} out={self.bytes_out}"
        return (
            f"{self.time} {self.id} {self.method} {self.path} {self.status} {self.milliseconds:.1f} ms"
            f"{ascii(model)[1:-1]}{rows} {sizes}"
        )


class RequestLog:
    """Writes lines from a thread of its own: the event loop waits for no terminal and no pipe.

    write: gets whole lines with their end; by default one system call to stdout, so that lines of several processes do
    not mix."""

    def __init__(self, format: LogFormat, write: Callable[[bytes], object] | None = None):
        self._format, self._write = format, write or (lambda line: os.write(1, line))
        self._lines: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._dropped = 0
        self._thread = threading.Thread(target=self._loop, name="seq2see-log", daemon=True)
        self._thread.start()

    def add(self, record: RequestRecord) -> None:
        line = record.json() if self._format == "json" else record.text()
        try:
            self._lines.put_nowait(line.encode() + b"\n")
        except queue.Full:
            self._dropped += 1

    def close(self, grace: float = 1.0) -> None:
        """Write what waits; a reader that takes nothing is waited for no longer than that."""
        try:
            self._lines.put(None, timeout=grace)
        except queue.Full:
            return
        self._thread.join(grace)

    def _loop(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                self._write(line)
                if self._dropped:
                    dropped, self._dropped = self._dropped, 0
                    message = {"time": timestamp(), "dropped": dropped}
                    text = json.dumps(message) if self._format == "json" else f"{message['time']} dropped {dropped}"
                    self._write(text.encode() + b"\n")
        except OSError:  # nobody reads any longer: serving goes on without a log
            while self._lines.get() is not None:
                pass


NOT_HTTP = "Invalid HTTP request received."
"""What uvicorn logs of every request that is none: strangers could fill a log with it. They are answered with 400."""


class JsonFormatter(logging.Formatter):
    """Messages of the server itself (errors, models loaded again) as JSON, one object in a line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps({"time": timestamp(), "level": record.levelname.lower(), "message": record.getMessage()})


@contextmanager
def messages_to_stderr(format: LogFormat) -> Iterator[None]:
    """Send the messages of the server to stderr while inside: as JSON where requests are, and notices with them;
    otherwise as they are."""
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: record.getMessage() != NOT_HTTP)
    if format == "json":
        handler.setFormatter(JsonFormatter())
    logs = [logging.getLogger(name) for name in ("seq2see.studio", "uvicorn.error")]
    before = [(log.level, log.propagate) for log in logs]
    for log in logs:
        log.addHandler(handler)
        log.propagate = False
    logs[0].setLevel(logging.INFO)
    try:
        with _notices_to(logs[0]) if format == "json" else nullcontext():
            yield
    finally:
        for log, (level, propagate) in zip(logs, before, strict=True):
            log.removeHandler(handler)
            log.setLevel(level)
            log.propagate = propagate


@contextmanager
def _notices_to(log: logging.Logger) -> Iterator[None]:
    """Filters of warnings, which are all threads', stay as they are."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, Notice):
            log.warning("%s", message)
        else:
            usual(message, category, *place, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual
