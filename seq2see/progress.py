"""The progress display of long work: a status line that rich rewrites on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # imported late: `--help` needs no tables and bars
    from rich.live import Live
    from rich.table import Table

REFRESH_SECONDS = 0.2
"""Between two states of a status line."""
SHORTEST_BAR, LONGEST_BAR = 5, 20


class StatusLine:
    """One line at the bottom of a terminal, rewritten in place; without a terminal only `print` writes anything."""

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self._display: Live | None = None

    def show(self, text: str, *, share: float | None = None) -> None:
        """Rewrite the line. share: how much of the work is done, drawn as a bar before the text."""
        if not self.live:
            return
        if self._display is None:
            self._display = self._start()
        self._display.update(_row(text, share, width=self._display.console.width), refresh=True)

    def print(self, text: str) -> None:
        """Write a line that stays, above the status line."""
        if self._display is None:
            self.stream.write(text + "\n")
            self.stream.flush()
        else:
            self._display.console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the status line; a later `show` begins a new one."""
        if self._display is not None:
            self._display.stop()
            self._display = None

    def _start(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self.stream, force_terminal=True)
        display = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        display.start()
        console.show_cursor(True)  # a process that is killed leaves the terminal as it was
        return display


def _row(text: str, share: float | None, *, width: int) -> Table:
    """The status line: a percentage and, where the width leaves room for it, a bar before the text."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    line = Text(text, no_wrap=True, overflow="ellipsis")
    if share is None:
        table.add_row(line)
        return table
    done = min(share, 1.0)
    percentage = Text(f"{done:4.0%}", no_wrap=True)
    room = width - line.cell_len - 10
    if room < SHORTEST_BAR:
        table.add_row(percentage, line)
    else:
        table.add_row(ProgressBar(total=1.0, completed=done, width=min(room, LONGEST_BAR)), percentage, line)
    return table


class Meter:
    """Shows how many rows are done, how fast, and how long the rest will take; silent without a terminal."""

    def __init__(self, stream: TextIO | None = None):
        self.status = StatusLine(stream)
        self._task, self._done = "", 0
        self._started = self._shown = 0.0

    def __call__(self, task: str, done: int, total: int | None = None) -> None:
        """So many of the task ("rows scored") are done, of `total` where that is known. A new task starts anew."""
        if not self.status.live:
            return
        now = time.monotonic()
        if task != self._task or done < self._done:
            self._task, self._started, self._shown = task, now, 0.0
        self._done = done
        if now - self._shown < REFRESH_SECONDS:
            return
        self._shown = now
        seconds = now - self._started
        noun, *_ = task.split()
        speed = f"  {done / seconds:,.0f} {noun}/s" if seconds > 0 else ""
        if total is None:
            self.status.show(f"{done:,} {task}{speed}")
        else:
            share = done / max(total, 1)
            self.status.show(f"{done:,} of {total:,} {task}{speed}{remaining(share, seconds)}", share=share)

    def close(self) -> None:
        """Remove the line."""
        self.status.close()


SECONDS_BETWEEN_LINES = 15.0


class ReadingProgress:
    """Shows how far a large table is read, how fast, and how long the rest will take: on a terminal as `Meter` does,
    elsewhere by a line every quarter of a minute. size: bytes of the table."""

    def __init__(self, size: int, stream: TextIO | None = None):
        self._size, self._meter = size, Meter(stream)
        self._started = self._told = time.monotonic()

    def __call__(self, rows: int, size: int) -> None:
        """So many rows, of so many bytes, are read."""
        share = min(size / self._size, 1.0) if size else 0.0
        self._meter("rows read", rows, int(rows / share) if share else None)
        now = time.monotonic()
        if not self._meter.status.live and now - self._told > SECONDS_BETWEEN_LINES:
            self._told, seconds = now, now - self._started
            of = f" ({share:.0%} of the table)" if share else ""
            self._meter.status.print(f"{rows:,} rows read{of}, {rows / seconds:,.0f} rows/s{remaining(share, seconds)}")

    def close(self) -> None:
        self._meter.close()


def remaining(share: float, seconds: float) -> str:
    """'  about 6 min left', once enough of the work is done to tell.

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
