"""What a person sees of a run: a bar that moves where there is a terminal, plain lines where there is none."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from seq2see.errors import counted
from seq2see.evaluation import lookup
from seq2see.training.reports import Report

QUIET_SECONDS = 30.0


class Progress:
    """Lines on stderr: a status that is written over in a terminal, and one line per report."""

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.stream.isatty()
        self.last = 0.0
        self.status = ""
        self.rest = ""

    def updated(
        self, *, updates: int, epoch: float, share: float, seconds: float, loss: float, speed: float, unit: str
    ) -> None:
        self.rest = remaining(share, seconds)
        now = time.monotonic()
        if now - self.last < (0.2 if self.live else QUIET_SECONDS):
            return
        self.last = now
        bar = _bar(share) if self.live and share else ""
        text = (
            f"{bar}{counted(updates, 'update')}  epoch {epoch:.2f}  loss {loss:.3f}  {speed:,.0f} {unit}/s{self.rest}"
        )
        if self.live:
            self.stream.write("\r\x1b[2K" + text)
            self.stream.flush()
            self.status = text
        else:
            self._line("... " + text)

    def reported(self, report: Report, metric: str) -> None:
        self.last = time.monotonic()
        shown = "  ".join(_measured(name, value, report) for name, value in report.dev.items())
        best = "  best so far" if report.best else ""
        self._line(
            f"{counted(report.update, 'update')}  loss {report.loss:.3f}  dev {shown}{best}  "
            f"{report.tokens_per_second:,.0f} {report.unit}/s{self.rest}"
        )
        for sample in report.samples:
            wanted = ""
            if sample["reference"]:
                wanted = "  (right)" if sample["right"] else f"  (should be {sample['reference']})"
            start = f"{sample['input']} -> " if sample.get("input") else ""
            self._line(f"    {_short(start + sample['output'])}{_short(wanted)}")

    def said(self, message: str) -> None:
        self._line(message)

    def close(self) -> None:
        if self.live:
            self.stream.write("\r\x1b[2K")
            self.stream.flush()

    def _line(self, text: str) -> None:
        self.stream.write(("\r\x1b[2K" if self.live else "") + text + "\n")
        self.stream.flush()


def remaining(share: float, seconds: float) -> str:
    """'  about 6 min left', once enough of the run is done to tell.

    >>> remaining(0.25, 120)
    '  about 6 min left'
    """
    if share <= 0.005 or seconds < 2:
        return ""
    left = seconds * (1 - min(share, 1.0)) / share
    if left < 90:
        return f"  about {left:.0f} s left"
    if left < 5400:
        return f"  about {left / 60:.0f} min left"
    return f"  about {left / 3600:.1f} h left"


def _measured(name: str, value: float, report: Report) -> str:
    shown = f"{name} {lookup(name).show(value)}"
    if name in report.baseline:
        shown += f" ({report.baseline_says.get(name, 'baseline')}: {lookup(name).show(report.baseline[name])})"
    return shown


def _short(text: str, most: int = 100) -> str:
    text = text.replace("\n", "⏎")
    return text if len(text) <= most else text[: most - 1] + "…"


def _bar(share: float, width: int = 20) -> str:
    full = int(min(share, 1.0) * width)
    return "█" * full + "░" * (width - full) + f" {min(share, 1.0):4.0%}  "
