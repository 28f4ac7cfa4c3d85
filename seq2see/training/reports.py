"""Reports of a run: when they come, metrics.jsonl, listeners (the progress display), sample outputs, example rows."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from seq2see.data.columns import OUTPUT, Question
from seq2see.errors import UserError, counted
from seq2see.evaluation import lookup
from seq2see.evaluation.metrics import Rows, Unit, measure, symbols
from seq2see.evaluation.strings import edit_distance
from seq2see.files import MEBIBYTE, parse_json, read_bytes, unwritable, write_bytes
from seq2see.looks import Prediction
from seq2see.modalities.video import BACKWARDS
from seq2see.progress import REFRESH_SECONDS, StatusLine, remaining
from seq2see.recipe import Recipe
from seq2see.recipe.schema import TrainingSettings

METRICS = "metrics.jsonl"


@dataclass
class Report:
    """One line of metrics.jsonl.

    dev: metrics on the dev rows; baseline: those of the baselines; samples: input, output, the closest reference and
    whether the output is right; averaged: how many weights the model is the mean of, at the end of a run; unit: what
    `tokens_per_second` counts, rows where a row has one label; objective: what the loss carries from update to update
    (of hard attention the moving baseline and the variance of the returns).
    """

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


# ---------------------------------------------------------------- when reports come

MOST_UPDATES_BETWEEN_REPORTS = 2000
LARGEST_SHARE = 0.05
"""Of a run's time, for reports that are planned by epochs."""
PASS_COST = 0.6
"""Of searching for or scoring a dev row, beside training on a row: it was measured as 0.4 to 0.8."""
FEWEST_REPORTS = 8
"""Of a run, whatever they cost: fewer could not tell which weights are best."""


def epochs_between_reports(settings: TrainingSettings, *, trained: int, evaluated: int, batches: int) -> int:
    """Epochs from one report to the next, such that reports take at most about a twentieth of the run.

    trained: rows of an epoch; evaluated: dev rows of a report, those that are searched for and scored twice; batches:
    of an epoch. These are counted and not timed, so that a run reports at the same updates on any machine, and after
    it was resumed.

    >>> epochs_between_reports(TrainingSettings(epochs=40), trained=1600, evaluated=160, batches=50)
    2
    >>> epochs_between_reports(TrainingSettings(epochs=40), trained=1600, evaluated=1600, batches=50)
    5
    """
    if settings.schedule == "plateau":  # which halves the rate after reports
        return 1
    planned = math.ceil(PASS_COST * evaluated / (LARGEST_SHARE * max(trained, 1)))
    planned = min(planned, MOST_UPDATES_BETWEEN_REPORTS // max(batches, 1))
    if settings.epochs:
        planned = min(planned, settings.epochs // FEWEST_REPORTS)
    if settings.updates:
        planned = min(planned, settings.updates // (FEWEST_REPORTS * max(batches, 1)))
    return max(planned, 1)


# ---------------------------------------------------------------- listeners


class Listener(Protocol):
    """Follows a run while it goes: the progress bar, trackers (`trackers.py`), the studio.

    `on_update` is called after every update, `on_report` after every measurement on the dev rows (metric: the name of
    the one that selects the best weights), `on_message` with what the user should know, `close` when the training ends
    or is stopped. A listener is called in the training's own thread: what takes long slows it down.
    """

    def on_update(self, status: UpdateStatus) -> None: ...

    def on_report(self, report: Report, metric: str) -> None: ...

    def on_message(self, message: str) -> None: ...

    def close(self) -> None: ...


LISTENER = [name for name in vars(Listener) if not name.startswith("_")]
"""The methods of a listener."""


class Journal:
    """Writes metrics.jsonl in the run's folder; on resuming, lines after the checkpoint are dropped."""

    def __init__(self, folder: Path, *, up_to: int | None):
        self.path = folder / METRICS
        if up_to is None or not self.path.exists():
            write_bytes(self.path, b"")
            return
        kept = [line for line in self.path.read_bytes().splitlines() if update_of(line) <= up_to]
        write_bytes(self.path, b"".join(line + b"\n" for line in kept))

    def write(self, report: Report) -> None:
        try:
            # bytes of a path that are not UTF-8 become escapes of JSON
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(report.to_dict(), ensure_ascii=False) + "\n")
        except OSError as error:
            raise unwritable(self.path, error) from None


def update_of(line: bytes) -> float:
    """The update of a line; infinity for a line that was cut short by a kill."""
    try:
        return int(parse_report(line)["update"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return float("inf")


def parse_report(line: bytes) -> dict[str, Any]:
    """A line of metrics.jsonl; a ValueError where it is none."""
    record = parse_json(line.decode("utf-8", "surrogateescape"), constants=True, halves=True)
    if not isinstance(record, dict):
        raise ValueError("a JSON object is expected")
    return record


def read_reports(folder: Path) -> list[dict[str, Any]]:
    """All lines of metrics.jsonl; a UserError names one that is damaged."""
    path = folder / METRICS
    reports = []
    for number, line in enumerate(read_bytes(path, most=256 * MEBIBYTE, what="metrics").splitlines(), 1):
        try:
            reports.append(parse_report(line))
        except ValueError as error:
            raise UserError(f"{path}, line {number}: damaged: {error}") from None
    return reports


def mean_is_reported(folder: Path, update: int) -> bool:
    """Whether the last line is about the mean of the best weights after this update: the run had come to its end."""
    path = folder / METRICS
    lines = path.read_bytes().splitlines() if path.is_file() else []
    return bool(lines) and update_of(lines[-1]) == update and bool(parse_report(lines[-1]).get("averaged"))


def best_report(folder: Path) -> dict[str, Any]:
    """The report of metrics.jsonl whose weights are the model."""
    reports = read_reports(folder)
    return next((report for report in reversed(reports) if report.get("best")), reports[-1] if reports else {})


# ---------------------------------------------------------------- progress on stderr

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
        metrics = "  ".join(_metric_text(name, value, report) for name, value in report.dev.items())
        best = "  best so far" if report.best else ""
        self.status.print(
            f"{counted(report.update, 'update')}  loss {report.loss:.3f}  dev {metrics}{best}  "
            f"{report.tokens_per_second:,.0f} {report.unit}/s{self.time_left}"
        )
        for sample in report.samples:
            self.status.print(f"    {_sample_line(sample)}")

    def on_message(self, message: str) -> None:
        self.status.print(message)

    def close(self) -> None:
        self.status.close()


@contextmanager
def progress_unless(
    listeners: Sequence[Listener] | None, display: Callable[[], Listener]
) -> Iterator[Sequence[Listener]]:
    """The listeners that were given, or a progress display that is removed at the end, however a run ends."""
    if listeners is not None:
        for listener in listeners:
            lacking = [name for name in LISTENER if not callable(getattr(listener, name, None))]
            if lacking or isinstance(listener, type):
                wrong = f"has no {', '.join(lacking)}" if lacking else "is a class; give an object of it"
                raise UserError(f"listeners: {listener!r} {wrong}; a listener has the methods {', '.join(LISTENER)}")
        yield listeners
        return
    with closing(display()) as progress:
        yield [progress]


def _metric_text(name: str, value: float, report: Report) -> str:
    """A metric, and that of the baseline beside it."""
    shown = f"{name} {lookup(name).show(value)}"
    if name in report.baseline:
        shown += f" ({report.baseline_says.get(name, 'baseline')}: {lookup(name).show(report.baseline[name])})"
    return shown


def _sample_line(sample: dict[str, Any]) -> str:
    """An output with its input before it and its reference behind it."""
    reference = ""
    if sample["reference"]:
        reference = "  (right)" if sample["right"] else f"  (should be {sample['reference']})"
    output = _shorten(sample["output"])
    start = ""
    if sample.get("input"):
        start = _shorten(sample["input"], max(LONGEST_SAMPLE - len(output), LONGEST_SAMPLE // 2)) + " -> "
    return start + output + _shorten(reference)


def _shorten(text: str, most: int = LONGEST_SAMPLE) -> str:
    text = text.replace("\n", "⏎")
    return text if len(text) <= most else text[: most - 1] + "…"


# ---------------------------------------------------------------- samples

WHOLE_OUTPUT = ("exact", "exact_lc", "accuracy", "accuracy_lc")
"""Metrics for which a whole output is right or wrong."""
SEPARATOR = " | "
"""Between the inputs of a sample."""


def samples_of(
    recipe: Recipe, questions: Sequence[Question], predictions: Sequence[Prediction], *, metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """Records of input, output, closest reference, and whether the output is `right` by the metrics of the run.

    There are none of outputs that are numbers, which are hardly ever right to the last digit.
    """
    if recipe.output.numeric:
        return []
    unit: Unit = getattr(recipe.output, "tokens", "word")
    whole = recipe.output.correct
    name = next((name for name in metrics if name in WHOLE_OUTPUT), whole)
    samples = []
    for question, prediction in zip(questions, predictions, strict=True):
        output = str(prediction.answer)
        samples.append(
            {
                "input": _join(prediction.input),
                "output": output,
                "reference": closest_reference(output, question.references, unit),
                "right": measure([name], Rows([output], [question.references], unit=unit))[name] == 1.0,
            }
        )
    return samples


def closest_reference(output: str, references: Sequence[str], unit: Unit) -> str:
    """The reference with the smallest edit distance from an output; of equally close ones the first.

    >>> closest_reference("R EH D", ["R IY D", "R EH D"], "symbol")
    'R EH D'
    """
    own = symbols(output, unit)
    return min(references, key=lambda text: edit_distance(own, symbols(text, unit)))


def split_inputs(joined: str, inputs: int) -> list[str] | None:
    """The inputs of a sample; None where that is ambiguous, since one of them contains the separator.

    >>> split_inputs("a | b", 2), split_inputs("a | b", 1), split_inputs("a | b | c", 2), split_inputs("a | | b", 2)
    (['a', 'b'], ['a | b'], None, None)
    """
    if inputs == 1:
        return [joined]
    parts = joined.split(SEPARATOR)
    return parts if len(parts) == inputs and "| |" not in joined else None


def _join(inputs: object) -> str:
    return SEPARATOR.join(map(str, inputs.values())) if isinstance(inputs, Mapping) else str(inputs or "")


# ---------------------------------------------------------------- examples

EXAMPLES = "examples.jsonl"
MOST_EXAMPLES = 12


def write_examples(folder: Path, recipe: Recipe, dev: Iterable[Mapping[str, str]]) -> None:
    """Write some dev rows with different inputs into examples.jsonl, for the studio; of files only their paths, which
    are relative to the folder if they lie in it. There are none where `training.samples` is 0, and none of a language
    model."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    if recipe.inputs and recipe.training.samples:
        for row in dev:
            inputs = {name: row[name] for name in recipe.inputs}
            if all(value.strip() and not value.endswith(BACKWARDS) for value in inputs.values()):
                rows.setdefault(tuple(inputs.values()), _movable(recipe, {**inputs, OUTPUT: row[OUTPUT]}, folder))
            if len(rows) == MOST_EXAMPLES:
                break
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values()]
    write_bytes(folder / EXAMPLES, "".join(lines).encode("utf-8", "backslashreplace"))


def kept_examples(folder: Path, names: Sequence[str]) -> list[dict[str, str]]:
    """These columns of the rows that `write_examples` wrote; a UserError where there are none. The folder may come from
    a stranger."""
    path = folder / EXAMPLES
    lines = read_bytes(path, most=16 * MEBIBYTE, what="examples").splitlines()[:MOST_EXAMPLES]
    try:
        rows = [parse_json(line.decode("utf-8", "surrogateescape"), halves=True) for line in lines]
        return [_texts({name: row[name] for name in names}) for row in rows]
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path}: damaged: {error}") from None


def reported_examples(folder: Path, inputs: Sequence[str]) -> list[dict[str, str]]:
    """The same of the samples in the last report of metrics.jsonl, with OUTPUT: of runs that keep no examples."""
    lines = read_bytes(folder / METRICS, most=256 * MEBIBYTE, what="metrics").splitlines()
    try:
        samples = [
            (split_inputs(str(sample["input"]), len(inputs)), str(sample["reference"]))
            for sample in parse_report(lines[-1]).get("samples", [])
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / METRICS}: damaged: {error}") from None
    return [dict(zip(inputs, parts, strict=True)) | {OUTPUT: output} for parts, output in samples if parts is not None]


def _texts(row: dict[str, Any]) -> dict[str, str]:
    if not all(isinstance(value, str) for value in row.values()):
        raise ValueError("texts expected")
    return row


def _movable(recipe: Recipe, row: dict[str, str], folder: Path) -> dict[str, str]:
    """The row with paths that stay right if the folder is moved: inside it relative, elsewhere absolute."""
    return {name: _movable_path(value, folder) if name in file_names(recipe) else value for name, value in row.items()}


def _movable_path(value: str, folder: Path) -> str:
    path = Path(value).absolute()
    inside = path.is_relative_to(folder.absolute())
    return path.relative_to(folder.absolute()).as_posix() if inside else str(path)


def file_names(recipe: Recipe) -> list[str]:
    """The inputs of a recipe that are files, and the output if it is one."""
    files = [name for name, settings in recipe.inputs.items() if settings.file]
    return [*files, OUTPUT] if recipe.output.file else files
