"""Signals while a run goes on: the first ends it in an orderly way, a second at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """The signal that asked a run to stop; None as long as none did."""

    number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None

    def exception(self) -> BaseException:
        """What ends the program: KeyboardInterrupt for Ctrl-C, as in Python; SystemExit for SIGTERM, as in shells."""
        return KeyboardInterrupt() if self.number == signal.SIGINT else SystemExit(128 + (self.number or 0))


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM instead of ending at once; in other threads than the main one no handlers are set."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if request:
            raise StopRequest(number).exception()
        request.number = number

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
