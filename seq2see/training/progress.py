"""The progress of a training run on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, TextIO

from seq2see.errors import counted
from seq2see.evaluation import lookup
from seq2see.progress import REFRESH_SECONDS, StatusLine, remaining
from seq2see.training.reports import Listener, Report, UpdateStatus

QUIET_SECONDS = 30.0
"""Between two lines about updates, without a terminal."""
LONGEST_SAMPLE = 100


class Progress:
    """A listener that shows every report as a line, and the updates between them in a status line."""

    def __init__(self, stream: TextIO | None = None):
        self.status = StatusLine(stream)
        self.last = 0.0
        self.time_left = ""

    def on_update(self, status: UpdateStatus) -> None:
        self.time_left = remaining(status.share, status.seconds)
        now = time.monotonic()
        if now - self.last < (REFRESH_SECONDS if self.status.live else QUIET_SECONDS):
            return
        self.last = now
        text = (
            f"{counted(status.updates, 'update')}  epoch {status.epoch:.2f}  loss {status.loss:.3f}  "
            f"{status.speed:,.0f} {status.unit}/s{self.time_left}"
        )
        if self.status.live:
            self.status.show(text, share=status.share or None)
        else:
            self.status.print("... " + text)

    def on_report(self, report: Report, metric: str) -> None:
        self.last = time.monotonic()
        metrics = "  ".join(_metric(name, value, report) for name, value in report.dev.items())
        best = "  best so far" if report.best else ""
        self.status.print(
            f"{counted(report.update, 'update')}  loss {report.loss:.3f}  dev {metrics}{best}  "
            f"{report.tokens_per_second:,.0f} {report.unit}/s{self.time_left}"
        )
        for sample in report.samples:
            self.status.print(f"    {_sample(sample)}")

    def on_message(self, message: str) -> None:
        self.status.print(message)

    def close(self) -> None:
        self.status.close()


@contextmanager
def progress_unless(
    listeners: Sequence[Listener] | None, display: Callable[[], Progress]
) -> Iterator[Sequence[Listener]]:
    """The listeners that were given, or a progress display that is removed at the end, however a run ends."""
    if listeners is not None:
        yield listeners
        return
    with closing(display()) as progress:
        yield [progress]


def _metric(name: str, value: float, report: Report) -> str:
    """A metric, and that of the baseline beside it."""
    shown = f"{name} {lookup(name).show(value)}"
    if name in report.baseline:
        shown += f" ({report.baseline_says.get(name, 'baseline')}: {lookup(name).show(report.baseline[name])})"
    return shown


def _sample(sample: dict[str, Any]) -> str:
    """An output with its input before it and its reference behind it."""
    reference = ""
    if sample["reference"]:
        reference = "  (right)" if sample["right"] else f"  (should be {sample['reference']})"
    start = f"{sample['input']} -> " if sample.get("input") else ""
    return _shorten(start + sample["output"]) + _shorten(reference)


def _shorten(text: str) -> str:
    text = text.replace("\n", "⏎")
    return text if len(text) <= LONGEST_SAMPLE else text[: LONGEST_SAMPLE - 1] + "…"
