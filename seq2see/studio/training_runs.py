"""Training runs for the page: reports and film from the run's folder, and the progress of one in this process."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any

from seq2see.errors import UserError
from seq2see.evaluation import higher_is_better
from seq2see.files import parse_json
from seq2see.pipeline.bundle import saved_recipe
from seq2see.pipeline.evaluator import report_metrics
from seq2see.pipeline.five_answers import answers_of
from seq2see.recipe import Recipe
from seq2see.studio.request_body import DEPTH
from seq2see.training.film import FILM
from seq2see.training.reports import METRICS, SEPARATOR, Report, UpdateStatus

# ---------------------------------------------------------------- files that grow

READ_BYTES = 1 << 24
"""Bytes that one call reads; the rest of a large file comes with the next calls, so that none takes long."""
LINE_BYTES = 1 << 23
"""Longer lines are left out."""
KEPT_BYTES = 1 << 28
"""Memory for the lines of a file; lines beyond it are left out."""
OVERHEAD = 64
"""Bytes of memory that a line takes beside its contents."""


@dataclass(frozen=True)
class Lines:
    """Complete lines from number `first` on; file: identifies the file, and changes when it is written anew."""

    file: str
    first: int
    lines: list[bytes]
    following: int
    """Number of the line after these."""
    complete: bool
    """Whether these are all lines that the file has now."""


class FileTail:
    """Reads the lines that are appended to a file. A run that starts again, or resumes from a checkpoint, writes its
    files anew: then the lines start again from 0, under another `file`."""

    def __init__(self, path: Path, *, is_valid: Callable[[bytes], bool] = bool):
        """is_valid: lines that are not (damaged by a full disk, say) are left out."""
        self._path, self._lock, self._is_valid = path, threading.Lock(), is_valid
        self._reset()

    def since(self, after: int, file: str | None = None, *, most: int | None = None) -> Lines:
        """Lines from number `after` on, at most `most`; from 0 where `file` is another one."""
        with self._lock:
            self._read()
            first = min(after, len(self._lines)) if file is None or file == self._name else 0
            lines = self._lines[first:] if most is None else self._lines[first : first + most]
            following = first + len(lines)
            return Lines(self._name, first, lines, following, following == len(self._lines) and not self._more)

    def _reset(self) -> None:
        self._lines: list[bytes] = []
        self._beginning = b""
        self._name, self._inode, self._offset = token_hex(4), 0, 0
        self._more, self._in_long_line, self._kept = False, False, 0

    def _read(self) -> None:
        try:
            if not self._path.is_file():  # reading a pipe would block
                raise FileNotFoundError(self._path)
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._offset and not self._same(status, file.read(len(self._beginning))):
                    self._reset()
                self._inode = status.st_ino
                file.seek(self._offset)
                content = file.read(READ_BYTES)
        except OSError:
            if self._offset:
                self._reset()
            return
        self._more = len(content) == READ_BYTES
        end = content.rfind(b"\n") + 1
        if not end and len(content) > LINE_BYTES:  # skipped, wherever it ends
            end, self._in_long_line = len(content), True
            self._advance(content, end)
        elif end:
            self._advance(content, end)
            self._keep(content[:end])

    def _advance(self, content: bytes, end: int) -> None:
        if not self._offset:
            newline = content.find(b"\n", 0, LINE_BYTES)
            self._beginning = content[: newline + 1 if newline >= 0 else LINE_BYTES]
        self._offset += end

    def _keep(self, content: bytes) -> None:
        """Keep complete lines; the first may be the end of a line that is too long."""
        lines = content.splitlines()
        for line in lines[1:] if self._in_long_line else lines:
            size = self._kept + len(line) + OVERHEAD
            if len(line) <= LINE_BYTES and size <= KEPT_BYTES and self._is_valid(line):
                self._lines.append(line)
                self._kept = size
        self._in_long_line = False

    def _same(self, status: os.stat_result, beginning: bytes) -> bool:
        """Whether the file is the one that was read before; inodes are used again, so the first line counts too."""
        return status.st_ino == self._inode and status.st_size >= self._offset and beginning == self._beginning


# ---------------------------------------------------------------- runs

NOTES, FRAMES = 100, 24
WATCHED, LAST_REQUEST = 5.0, 4.0
"""Seconds: a page that asked so recently is still open; a page may take so long to ask for the end of the run."""

Record = dict[str, Any]


class RunProgress:
    """A training listener that keeps the progress of a run, to be read from other threads."""

    def __init__(self) -> None:
        self.status: Record | None = None
        self.notes: list[str] = []
        self.ended, self.failure = False, ""

    def on_update(self, status: UpdateStatus) -> None:
        share, seconds = status.share, status.seconds
        left = seconds * (1 - min(share, 1.0)) / share if share > 0.005 else None
        self.status = {
            "update": status.updates,
            "epoch": status.epoch,
            "share": share,
            "seconds": seconds,
            "loss": status.loss,
            "tokens_per_second": status.speed,
            "unit": status.unit,
            "seconds_left": left,
        }

    def on_report(self, report: Report, metric: str) -> None:
        """Nothing: reports are read from the run's folder."""

    def on_message(self, message: str) -> None:
        self.notes = [*self.notes[-NOTES + 1 :], message]

    def close(self) -> None:
        self.ended = True

    @property
    def state(self) -> str:
        if self.failure:
            return "failed"
        return "ended" if self.ended else "learning"


class TrainingRun:
    """The training run in a folder. progress: of a run in this process, None for a recorded one; answers: the five
    answers of the loaded model (default: those of the recipe)."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        progress: RunProgress | None = None,
        answers: Callable[[], Record] | None = None,
    ):
        self.name, self.folder, self.progress, self._answers = name, folder, progress, answers
        self._metrics = FileTail(folder / METRICS, is_valid=partial(_is_record, constants=True))
        self._film = FileTail(folder / FILM, is_valid=_is_record)
        self._last_request = float("-inf")
        self._state_sent, self._film_sent = threading.Event(), threading.Event()

    @property
    def recorded(self) -> bool:
        return (self.folder / METRICS).is_file()

    def about(self) -> Record:
        """The recipe, the five answers and the metric that is followed; only the name (`ready`: false) before the run
        has written its recipe, or where the recipe cannot be read."""
        record: Record = {"name": self.name, "state": self._state, "ready": False}
        recipe = self._recipe
        if recipe is None:
            return record
        metric = report_metrics(recipe)[1]
        return record | {
            "ready": True,
            "task": recipe.task,
            "description": recipe.description,
            "recipe": recipe.to_dict(),
            "metric": metric,
            "higher_is_better": higher_is_better(metric),
            "answers": self._answers() if self._answers is not None else _describe_answers(recipe),
        }

    def metrics(self, after: int, file: str | None = None) -> Record:
        """Reports from number `after` on, and the progress of the run."""
        part = self._metrics.since(after, file)
        record: Record = {"file": part.file, "first": part.first, "next": part.following, "state": self._state}
        is_file = self._input_is_file if part.lines else None
        record["reports"] = [_without_folders(json.loads(line), is_file) for line in part.lines]
        if self.progress is not None:
            self._last_request = monotonic()
            progress = self.progress
            record |= {"status": progress.status, "notes": progress.notes, "failure": progress.failure}
            if record["state"] != "learning":
                self._state_sent.set()
        return record

    def film(self, after: int, file: str | None = None) -> bytes:
        """At most FRAMES frames from number `after` on, as JSON; the examples come with frame 0."""
        head = 1
        part = self._film.since(after + head if after else 0, file, most=FRAMES)
        first, lines = max(part.first - head, 0), part.lines
        following, complete = max(part.following - head, 0), part.complete
        record: Record = {"file": part.file, "first": first, "next": following, "whole": complete}
        examples = b"null"
        if part.first == 0 and lines:
            examples, lines = lines[0], lines[1:]
        if self.progress is not None and self.progress.state != "learning" and complete:
            self._film_sent.set()
        beginning = json.dumps(record, separators=(",", ":")).encode()[:-1]
        return beginning + b',"film":' + examples + b',"frames":[' + b",".join(lines) + b"]}"

    def wait_for_page(self) -> None:
        """Give an open page some seconds to ask for the end of the run and for the rest of the film."""
        if monotonic() - self._last_request < WATCHED:
            deadline = monotonic() + LAST_REQUEST
            for sent in (self._state_sent, self._film_sent):
                sent.wait(max(deadline - monotonic(), 0.0))

    @property
    def _recipe(self) -> Recipe | None:
        """The recipe of the run, where its folder has one that can be read."""
        try:
            return saved_recipe(self.folder)
        except (UserError, OSError, ValueError, RecursionError):
            return None

    @property
    def _input_is_file(self) -> list[bool] | None:
        """Whether each input is a file; None without a recipe."""
        recipe = self._recipe
        return None if recipe is None else [settings.file for settings in recipe.inputs.values()]

    @property
    def _state(self) -> str:
        return "recorded" if self.progress is None else self.progress.state


def _describe_answers(recipe: Recipe) -> Record:
    answers = answers_of(recipe)
    return answers.to_dict() | {"description": answers.description, "text": answers.text()}


def _is_record(line: bytes, *, constants: bool = False) -> bool:
    """Whether a line is one JSON object of limited depth; constants: it may have NaN, which is sent as null (lines of
    films are sent as they are)."""
    try:
        return isinstance(parse_json(line.decode(), constants=constants, halves=True, depth=DEPTH), dict)
    except ValueError:
        return False


def _without_folders(report: Record, is_file: list[bool] | None) -> Record:
    """A report whose samples have names of files in place of paths.

    A sample's inputs are joined into one text. Where it has more parts than there are inputs, or nothing is known of
    the inputs (is_file: None), every part that could be a path is taken for one.
    """
    samples = report.get("samples")
    if (is_file is not None and not any(is_file)) or not isinstance(samples, list):
        return report
    for sample in samples:
        if not isinstance(sample, dict):
            continue
        parts = str(sample.get("input", "")).split(SEPARATOR)
        known = is_file is not None and len(parts) == len(is_file)
        flags = is_file if known and is_file is not None else [Path(part).is_absolute() for part in parts]
        sample["input"] = SEPARATOR.join(
            Path(part).name if is_path else part for part, is_path in zip(parts, flags, strict=True)
        )
    return report
