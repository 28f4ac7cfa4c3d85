"""What a run tells while it goes: one line of metrics.jsonl per report, and whoever listens."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seq2see.data.output import unwritable, write_bytes
from seq2see.errors import imported

METRICS = "metrics.jsonl"


@dataclass
class Report:
    """dev: metrics on the dev rows; baseline: of the trivial models beside them; samples: input, output, the closest
    reference and whether the output is right;
    averaged: how many weights the model is the mean of, at the end of a run; unit: what `tokens_per_second` counts,
    which is rows where a row has one label and no tokens to write; objective: what the loss carries along (of draws the
    moving baseline and the variance of what they are learned from)."""

    update: int
    epoch: float
    seconds: float
    loss: float
    learning_rate: float
    tokens_per_second: float
    gradient_norm: float
    dev: dict[str, float] = field(default_factory=dict)
    baseline: dict[str, float] = field(default_factory=dict)
    baseline_says: dict[str, str] = field(default_factory=dict)
    best: bool = False
    averaged: int = 0
    unit: str = "tokens"
    samples: list[dict[str, Any]] = field(default_factory=list)
    objective: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value not in ({}, [], "")}


class Listener(Protocol):
    """Anything that wants to see a run go by: the progress bar, TensorBoard, the studio."""

    def updated(
        self, *, updates: int, epoch: float, share: float, seconds: float, loss: float, speed: float, unit: str
    ) -> None: ...

    def reported(self, report: Report, metric: str) -> None: ...

    def said(self, message: str) -> None: ...

    def close(self) -> None: ...


class Journal:
    """metrics.jsonl in the run's folder; on resuming, what was written after the checkpoint is dropped."""

    def __init__(self, folder: Path, *, up_to: int | None):
        self.path = folder / METRICS
        if up_to is None or not self.path.exists():
            write_bytes(self.path, b"")
            return
        kept = [line for line in self.path.read_bytes().splitlines() if update_of(line) <= up_to]
        write_bytes(self.path, b"".join(line + b"\n" for line in kept))

    def write(self, report: Report) -> None:
        try:
            # of a path what is no UTF-8 becomes JSON's own escape
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(report.to_dict(), ensure_ascii=False) + "\n")
        except OSError as error:
            raise unwritable(self.path, error) from None


def update_of(line: bytes) -> float:
    """The update of a line; a line cut short by a kill counts as after everything."""
    try:
        return int(json.loads(line)["update"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def best_report(folder: Path) -> dict[str, Any]:
    """The report of metrics.jsonl whose weights were kept."""
    lines = (folder / METRICS).read_bytes().splitlines()
    reports: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return next((report for report in reversed(reports) if report.get("best")), reports[-1] if reports else {})


class TensorBoard:
    """Curves for TensorBoard, where its library is installed."""

    def __init__(self, folder: Path):
        imported("tensorboard", extra="tensorboard")
        self.writer = imported("torch.utils.tensorboard", extra="tensorboard").SummaryWriter(
            str(folder / "tensorboard")
        )

    def updated(
        self, *, updates: int, epoch: float, share: float, seconds: float, loss: float, speed: float, unit: str
    ) -> None:
        pass

    def reported(self, report: Report, metric: str) -> None:
        self.writer.add_scalar("train/loss", report.loss, report.update)
        self.writer.add_scalar("train/learning_rate", report.learning_rate, report.update)
        self.writer.add_scalar("train/gradient_norm", report.gradient_norm, report.update)
        for name, value in report.objective.items():
            self.writer.add_scalar(f"draws/{name}", value, report.update)
        for name, value in report.dev.items():
            self.writer.add_scalar(f"dev/{name}", value, report.update)
        self.writer.flush()

    def said(self, message: str) -> None:
        self.writer.add_text("notes", message)

    def close(self) -> None:
        self.writer.close()
