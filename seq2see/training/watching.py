"""A run that is one of many, told of in few words."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Hands on what a run does and says, each saying once over all runs. heard: what was said in earlier ones."""

    def __init__(self, listeners: Sequence[Listener], heard: set[str]):
        self.listeners, self.heard = listeners, heard

    def updated(
        self, *, updates: int, epoch: float, share: float, seconds: float, loss: float, speed: float, unit: str
    ) -> None:
        for listener in self.listeners:
            listener.updated(
                updates=updates, epoch=epoch, share=share, seconds=seconds, loss=loss, speed=speed, unit=unit
            )

    def reported(self, report: Report, metric: str) -> None:
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
