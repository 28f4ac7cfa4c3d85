"""A run that is one of many: timed, and told of in few words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from seq2see.training.progress import Progress
from seq2see.training.reports import Listener, Report


class Lines(Progress):
    """A status that moves where there is a terminal, and no line but what is said."""

    def updated(
        self, *, updates: int, epoch: float, share: float, seconds: float, loss: float, speed: float, unit: str
    ) -> None:
        if self.live:
            super().updated(
                updates=updates, epoch=epoch, share=share, seconds=seconds, loss=loss, speed=speed, unit=unit
            )

    def reported(self, report: Report, metric: str) -> None:
        pass


class Watch:
    """Hands on what a run says, each thing once over all runs of a comparison, and times its updates.

    heard: what was said in earlier runs. Time is taken between two tellings with no report between them, so that
    measuring on dev is not counted; the median is not moved by what else the machine did for a moment.
    """

    def __init__(self, listeners: Sequence[Listener], heard: set[str]):
        self.listeners, self.heard = listeners, heard
        self._spans: list[float] = []
        self._last: tuple[int, float] | None = None

    @property
    def seconds_per_update(self) -> float | None:
        """None where a run was too short to be timed."""
        return median(self._spans) if self._spans else None

    def updated(
        self, *, updates: int, epoch: float, share: float, seconds: float, loss: float, speed: float, unit: str
    ) -> None:
        now = time.perf_counter()
        if self._last is not None:
            self._spans.append((now - self._last[1]) / max(updates - self._last[0], 1))
        for listener in self.listeners:
            listener.updated(
                updates=updates, epoch=epoch, share=share, seconds=seconds, loss=loss, speed=speed, unit=unit
            )
        self._last = (updates, time.perf_counter())

    def reported(self, report: Report, metric: str) -> None:
        self._last = None
        for listener in self.listeners:
            listener.reported(report, metric)

    def said(self, message: str) -> None:
        if message not in self.heard:
            self.heard.add(message)
            for listener in self.listeners:
                listener.said(message)

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()
