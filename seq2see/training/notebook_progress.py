"""Training seen in a notebook: progress, learning curves and samples in one output that is redrawn while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from seq2see.errors import counted
from seq2see.evaluation.metrics import lookup
from seq2see.progress import remaining
from seq2see.training.reports import Listener, Progress, Report, UpdateStatus

REFRESH_SECONDS = 1.0
MESSAGES = 5
"""Messages that are shown, the newest last."""
WIDTH, HEIGHT, LEFT, BELOW = 420, 150, 52, 18
"""Of a curve in pixels, and its margins for numbers; it shrinks with the page."""

Show = Callable[[str], None]
"""Shows HTML in place of what it showed before."""


def progress_display() -> Listener:
    """How training is shown where the caller names no listeners: in a notebook, or in a terminal."""
    show = notebook_output()
    return Progress() if show is None else NotebookProgress(show)


def notebook_output() -> Show | None:
    """A new output of the notebook cell that runs; None outside notebooks."""
    module: Any = sys.modules.get("IPython")  # imported by every notebook, and by nothing here
    shell = module.get_ipython() if module is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    shown = module.display
    handle = shown.display(shown.HTML(""), display_id=True)
    return lambda html: handle.update(shown.HTML(html))


class NotebookProgress:
    """A listener that draws the run: loss and dev metric by update, the baseline as a dashed line, samples of dev."""

    def __init__(self, show: Show):
        self._show = show
        self._status: UpdateStatus | None = None
        self._reports: list[Report] = []
        self._metric = ""
        self._messages: list[str] = []
        self._drawn = 0.0
        self._ended = False

    def on_update(self, status: UpdateStatus) -> None:
        self._status = status
        if time.monotonic() - self._drawn >= REFRESH_SECONDS:
            self._draw()

    def on_report(self, report: Report, metric: str) -> None:
        self._reports.append(report)
        self._metric = metric
        self._draw()

    def on_message(self, message: str) -> None:
        self._messages = [*self._messages, message][-MESSAGES:]
        self._draw()

    def close(self) -> None:
        """The run has ended: no bar, and no time that is left."""
        self._ended = True
        self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        self._show(self.html())

    def html(self) -> str:
        """What is shown now."""
        parts = [f"<div>{escape(message)}</div>" for message in self._messages]
        if self._status is not None:
            parts.append(_status_line(self._status, ended=self._ended))
        curves = [report for report in self._reports if not report.averaged]
        if curves:
            updates = [report.update for report in curves]
            charts = [curve("loss", updates, [report.loss for report in curves])]
            if all(self._metric in report.dev for report in curves):
                show, last = lookup(self._metric).show, curves[-1]
                values = [report.dev[self._metric] for report in curves]
                charts.append(
                    curve(f"dev {self._metric}", updates, values, level=last.baseline.get(self._metric), show=show)
                )
            parts.append(f'<div style="display: flex; flex-wrap: wrap; gap: 1em">{"".join(charts)}</div>')
            parts.append(_samples(self._reports[-1].samples))
        return "\n".join(parts)


def _status_line(status: UpdateStatus, *, ended: bool) -> str:
    text = (
        f"{counted(status.updates, 'update')}, epoch {status.epoch:.2f}, loss {status.loss:.3f}, "
        f"{status.speed:,.0f} {status.unit}/s"
    )
    if ended:
        return f"<div>{escape(text)}</div>"
    text += remaining(status.share, status.seconds)
    bar = f'<progress max="1" value="{min(status.share, 1.0):.4f}"></progress> ' if status.share else ""
    return f"<div>{bar}{escape(text)}</div>"


def curve(
    title: str,
    updates: Sequence[int],
    values: Sequence[float],
    *,
    level: float | None = None,
    show: Callable[[float], str] = "{:.3f}".format,
) -> str:
    """A line of values by update as SVG; level: a dashed line, that of the baseline."""
    known = [value for value in [*values, *([] if level is None else [level])] if value == value and abs(value) < 1e12]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    span, last = (high - low) or 1.0, max(updates[-1], 1)

    def across(update: float) -> float:
        return LEFT + (WIDTH - LEFT - 8) * update / last

    def down(value: float) -> float:
        return 20 + (HEIGHT - BELOW - 26) * (1 - (value - low) / span)

    pairs = [(across(u), down(v)) for u, v in zip(updates, values, strict=True) if low <= v <= high]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="#3b6fb6"/>' for x, y in pairs)
    dashed = ""
    if level is not None and low <= level <= high:
        y = f"{down(level):.1f}"
        dashed = f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y}" y2="{y}" stroke="#888" stroke-dasharray="4 3"/>'
    style = 'fill="currentColor" font-size="11" font-family="sans-serif"'
    texts = [
        f'<text x="{LEFT}" y="12" {style} font-weight="bold">{escape(title)}</text>',
        f'<text x="{LEFT - 5}" y="{down(high) + 4:.1f}" {style} text-anchor="end">{escape(show(high))}</text>',
        f'<text x="{LEFT - 5}" y="{down(low) + 4:.1f}" {style} text-anchor="end">{escape(show(low))}</text>',
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 4}" {style} text-anchor="end">{updates[-1]:,} updates</text>',
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" style="width: {WIDTH}px; max-width: 100%" role="img" '
        f'aria-label="{escape(title)} by update">{"".join(texts)}{dashed}'
        f'<polyline points="{points}" fill="none" stroke="#3b6fb6" stroke-width="1.6"/>{dots}</svg>'
    )


def _samples(samples: Sequence[dict[str, Any]]) -> str:
    """Inputs of dev, what the model writes, and what is right."""
    rows = []
    for sample in samples:
        right = "right" if sample["right"] else f"should be {sample['reference']}" if sample["reference"] else ""
        cells = (str(sample.get("input") or ""), str(sample["output"]), right)
        rows.append(
            "<tr>" + "".join(f'<td dir="auto" style="text-align: start">{escape(c)}</td>' for c in cells) + "</tr>"
        )
    return f"<table>{''.join(rows)}</table>" if rows else ""
