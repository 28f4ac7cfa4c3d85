"""What a run tells while it goes: one line of metrics.jsonl per report, and whoever listens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seq2see.data.columns import OUTPUT, Question
from seq2see.errors import imported
from seq2see.evaluation.metrics import Rows, Unit, measure, symbols
from seq2see.evaluation.strings import edit_distance
from seq2see.files import unwritable, write_bytes
from seq2see.looks import Prediction
from seq2see.modalities.video import BACKWARDS
from seq2see.recipe import Recipe

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


@dataclass(frozen=True)
class UpdateStatus:
    """The state of a run after an update. share: of the whole run that is done, 0 where it has no end; seconds: of
    training so far; loss: the mean since the last report; speed: units (tokens or rows) a second."""

    updates: int
    epoch: float
    share: float
    seconds: float
    loss: float
    speed: float
    unit: str


class Listener(Protocol):
    """Follows a run while it goes: the progress bar, TensorBoard, the studio."""

    def on_update(self, status: UpdateStatus) -> None: ...

    def on_report(self, report: Report, metric: str) -> None: ...

    def on_message(self, message: str) -> None: ...

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

    def on_update(self, status: UpdateStatus) -> None:
        pass

    def on_report(self, report: Report, metric: str) -> None:
        self.writer.add_scalar("train/loss", report.loss, report.update)
        self.writer.add_scalar("train/learning_rate", report.learning_rate, report.update)
        self.writer.add_scalar("train/gradient_norm", report.gradient_norm, report.update)
        for name, value in report.objective.items():
            self.writer.add_scalar(f"draws/{name}", value, report.update)
        for name, value in report.dev.items():
            self.writer.add_scalar(f"dev/{name}", value, report.update)
        self.writer.flush()

    def on_message(self, message: str) -> None:
        self.writer.add_text("notes", message)

    def close(self) -> None:
        self.writer.close()


# ---------------- A few outputs beside what they should be, for a person who follows a run

WHOLE = ("exact", "exact_lc", "accuracy", "accuracy_lc")
"""Metrics that call a whole output right or wrong."""
JOINED = " | "
"""Between the inputs of a sample."""


def samples_of(
    recipe: Recipe, questions: Sequence[Question], predictions: Sequence[Prediction], *, metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """Input, output, the reference it is closest to, and whether it is `right`, as the metrics of the run see it.

    Numbers are hardly ever right to the last digit, and a report full of them is hardly ever read: none are told.
    """
    if recipe.output.numeric:
        return []
    unit: Unit = getattr(recipe.output, "tokens", "word")
    whole = recipe.output.correct
    name = next((name for name in metrics if name in WHOLE), whole)
    made = []
    for question, one in zip(questions, predictions, strict=True):
        said = str(one.answer)
        made.append(
            {
                "input": _joined(one.input),
                "output": said,
                "reference": closest_to(said, question.references, unit),
                "right": measure([name], Rows([said], [question.references], unit=unit))[name] == 1.0,
            }
        )
    return made


def closest_to(said: str, references: Sequence[str], unit: Unit) -> str:
    """The reference that the fewest edits turn an output into; of equally close ones the first.

    >>> closest_to("R EH D", ["R IY D", "R EH D"], "symbol")
    'R EH D'
    """
    made = symbols(said, unit)
    return min(references, key=lambda text: edit_distance(made, symbols(text, unit)))


def parted(joined: str, inputs: int) -> list[str] | None:
    """The inputs of a sample again; None where it cannot be told, since one of them holds the sign between them.

    >>> parted("a | b", 2), parted("a | b", 1), parted("a | b | c", 2), parted("a | | b", 2)
    (['a', 'b'], ['a | b'], None, None)
    """
    if inputs == 1:
        return [joined]
    parts = joined.split(JOINED)
    return parts if len(parts) == inputs and "| |" not in joined else None


def _joined(given: object) -> str:
    return JOINED.join(map(str, given.values())) if isinstance(given, Mapping) else str(given or "")


# ---------------- Rows to begin with, kept in a model's folder

EXAMPLES = "examples.jsonl"
MOST = 12


def keep_rows(folder: Path, recipe: Recipe, dev: Iterable[Mapping[str, str]]) -> None:
    """Write some dev rows of different inputs; of files the paths alone. None where no samples are to be told
    (`training.samples`), and none of a language model, which is asked nothing. Bytes of a path that are no UTF-8 are
    written as JSON escapes them, so that the file is UTF-8 whatever it names."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    if recipe.inputs and recipe.training.samples:
        for row in dev:
            inputs = {name: row[name] for name in recipe.inputs}
            if all(value.strip() and not value.endswith(BACKWARDS) for value in inputs.values()):
                found.setdefault(tuple(inputs.values()), _whole(recipe, {**inputs, OUTPUT: row[OUTPUT]}))
            if len(found) == MOST:
                break
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in found.values()]
    write_bytes(folder / EXAMPLES, "".join(lines).encode("utf-8", "backslashreplace"))


def _whole(recipe: Recipe, row: dict[str, str]) -> dict[str, str]:
    """The same row with paths that do not depend on where the run was begun."""
    files = [name for name, given in recipe.inputs.items() if given.file]
    return {name: str(Path(value).absolute()) if name in files else value for name, value in row.items()}
