"""A run to be watched: what its folder tells, and, while it goes on in this process, how it stands just now."""

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

from seq2see.data.media_files import MediaSettings
from seq2see.errors import UserError
from seq2see.evaluation import higher_is_better
from seq2see.files import parse_json
from seq2see.pipeline.bundle import RECIPE
from seq2see.pipeline.five_answers import answers_of
from seq2see.pipeline.measures import followed
from seq2see.recipe import Recipe, load_recipe
from seq2see.studio.bodies import DEPTH
from seq2see.training.film import FILM
from seq2see.training.reports import JOINED, METRICS, Report, UpdateStatus

# ---------------- The lines of a file that grows while it is read, told once each

MOST_READ = 1 << 24
"""Bytes read at once: the rest of a large file comes with the next calls, so that none of them takes long."""
MOST_LINE = 1 << 23
"""Bytes of a line; longer ones are left out."""
MOST_KEPT = 1 << 28
"""Bytes of memory for the lines of a file; those beyond are left out."""
OVERHEAD = 64
"""Bytes of memory that a line takes beside its own."""


@dataclass(frozen=True)
class Part:
    """Whole lines from number `first` on; `file` names the file they are of: one begun anew has another name."""

    file: str
    first: int
    lines: list[bytes]
    following: int
    """The number to ask from next."""
    whole: bool
    """Whether these are all that there are now."""


class Tail:
    """Reads what was appended since it was last asked. A run that is begun anew, or resumed from a checkpoint, writes
    its files anew: whoever has read the old one is then told the new one from its beginning."""

    def __init__(self, path: Path, *, wanted: Callable[[bytes], bool] = bool):
        """wanted: whether a line can be told; those that cannot (damaged by a full disk, say) are left out."""
        self._path, self._lock, self._wanted = path, threading.Lock(), wanted
        self._begin()

    def since(self, after: int, file: str | None = None, *, most: int | None = None) -> Part:
        """Lines from number `after` on; from 0 where those before were of another `file`. most: so many at once.

        Of a file with much more than was read so far not all comes at once: `whole` is then false.
        """
        with self._lock:
            self._read()
            first = min(after, len(self._lines)) if file is None or file == self._name else 0
            found = self._lines[first:] if most is None else self._lines[first : first + most]
            following = first + len(found)
            return Part(self._name, first, found, following, following == len(self._lines) and not self._more)

    def _begin(self) -> None:
        self._lines: list[bytes] = []
        self._beginning = b""
        self._name, self._inode, self._offset = token_hex(4), 0, 0
        self._more, self._in_long_line, self._kept = False, False, 0

    def _read(self) -> None:
        try:
            if not self._path.is_file():  # a pipe would keep us waiting
                raise FileNotFoundError(self._path)
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._offset and not self._same(status, file.read(len(self._beginning))):
                    self._begin()
                self._inode = status.st_ino
                file.seek(self._offset)
                content = file.read(MOST_READ)
        except OSError:
            if self._offset:
                self._begin()
            return
        self._more = len(content) == MOST_READ
        end = content.rfind(b"\n") + 1
        if not end and len(content) > MOST_LINE:  # it is passed over, wherever it may end
            end, self._in_long_line = len(content), True
            self._advance(content, end)
        elif end:
            self._advance(content, end)
            self._keep(content[:end])

    def _advance(self, content: bytes, end: int) -> None:
        if not self._offset:
            newline = content.find(b"\n", 0, MOST_LINE)
            self._beginning = content[: newline + 1 if newline >= 0 else MOST_LINE]
        self._offset += end

    def _keep(self, content: bytes) -> None:
        """Whole lines, the first of which may be the end of one that is too long."""
        lines = content.splitlines()
        for line in lines[1:] if self._in_long_line else lines:
            size = self._kept + len(line) + OVERHEAD
            if len(line) <= MOST_LINE and size <= MOST_KEPT and self._wanted(line):
                self._lines.append(line)
                self._kept = size
        self._in_long_line = False

    def _same(self, status: os.stat_result, beginning: bytes) -> bool:
        """Whether the file is the one that was read before: numbers of files are used again, first lines are not."""
        return status.st_ino == self._inode and status.st_size >= self._offset and beginning == self._beginning


NOTES, FRAMES = 100, 24
ATTENTIVE, PATIENCE = 5.0, 4.0
"""Seconds: a page that asked so recently still looks on; so long it may take to ask for the end."""

Record = dict[str, Any]


class Live:
    """A listener that remembers how a run stands, for whoever asks from another thread."""

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
        """Reports are read from the run's folder."""

    def on_message(self, message: str) -> None:
        self.notes = [*self.notes[-NOTES + 1 :], message]

    def close(self) -> None:
        self.ended = True

    @property
    def state(self) -> str:
        if self.failure:
            return "failed"
        return "ended" if self.ended else "learning"


class Watched:
    """The run in a folder. live: it goes on in this process; answers: the five answers of its model, where it is here
    whole (otherwise they are those of the recipe)."""

    def __init__(
        self, name: str, folder: Path, *, live: Live | None = None, answers: Callable[[], Record] | None = None
    ):
        self.name, self.folder, self.live, self._answers = name, folder, live, answers
        self._metrics = Tail(folder / METRICS, wanted=partial(_is_record, constants=True))
        self._film = Tail(folder / FILM, wanted=_is_record)
        self._asked = float("-inf")
        self._told_how, self._told_all = threading.Event(), threading.Event()

    @property
    def recorded(self) -> bool:
        return (self.folder / METRICS).is_file()

    def about(self) -> Record:
        """The recipe, the five answers, and which metric leads; only the name before the run has written them down, or
        where what it wrote cannot be read any more (`ready`: false)."""
        told: Record = {"name": self.name, "state": self._state, "ready": False}
        recipe = self._recipe
        if recipe is None:
            return told
        metric = followed(recipe)[1]
        return told | {
            "ready": True,
            "task": recipe.task,
            "description": recipe.description,
            "recipe": recipe.to_dict(),
            "metric": metric,
            "higher_is_better": higher_is_better(metric),
            "answers": self._answers() if self._answers is not None else _told(recipe),
        }

    def metrics(self, after: int, file: str | None = None) -> Record:
        """Reports from number `after` on, and how the run stands."""
        part = self._metrics.since(after, file)
        told: Record = {"file": part.file, "first": part.first, "next": part.following, "state": self._state}
        files = self._files if part.lines else None
        told["reports"] = [_without_folders(json.loads(line), files) for line in part.lines]
        if self.live is not None:
            self._asked = monotonic()
            told |= {"status": self.live.status, "notes": self.live.notes, "failure": self.live.failure}
            if told["state"] != "learning":
                self._told_how.set()
        return told

    def film(self, after: int, file: str | None = None) -> bytes:
        """Frames from number `after` on, as JSON; with those from 0 on the examples. At most so many at once."""
        head = 1
        part = self._film.since(after + head if after else 0, file, most=FRAMES)
        first, lines = max(part.first - head, 0), part.lines
        told: Record = {"file": part.file, "first": first, "next": max(part.following - head, 0), "whole": part.whole}
        scenes = b"null"
        if part.first == 0 and lines:
            scenes, lines = lines[0], lines[1:]
        if self.live is not None and self.live.state != "learning" and part.whole:
            self._told_all.set()
        written = json.dumps(told, separators=(",", ":")).encode()[:-1]
        return written + b',"film":' + scenes + b',"frames":[' + b",".join(lines) + b"]}"

    def seen_to_its_end(self) -> None:
        """Wait, a little, until a page that looks on has been told how the run ended and the whole film."""
        if monotonic() - self._asked < ATTENTIVE:
            until = monotonic() + PATIENCE
            for told in (self._told_how, self._told_all):
                told.wait(max(until - monotonic(), 0.0))

    @property
    def _recipe(self) -> Recipe | None:
        """The recipe of the run, where its folder has one that can be read."""
        try:
            return load_recipe(self.folder / RECIPE, complete=True)
        except (UserError, OSError, ValueError, RecursionError):
            return None

    @property
    def _files(self) -> list[bool] | None:
        """For each input whether it is a file; None where nothing is known of the inputs."""
        recipe = self._recipe
        return None if recipe is None else [isinstance(one, MediaSettings) for one in recipe.inputs.values()]

    @property
    def _state(self) -> str:
        return "recorded" if self.live is None else self.live.state


def _told(recipe: Recipe) -> Record:
    answers = answers_of(recipe)
    return answers.to_dict() | {"description": answers.description, "text": answers.text()}


def _is_record(line: bytes, *, constants: bool = False) -> bool:
    """Whether a line is one JSON object, and not nested beyond all measure; constants: NaN may stand in it, which is
    told as null (films are told as they are written)."""
    try:
        return isinstance(parse_json(line.decode(), constants=constants, halves=True, depth=DEPTH), dict)
    except ValueError:
        return False


def _without_folders(report: Record, files: list[bool] | None) -> Record:
    """Samples name files by their whole paths; a page is told their names. A text is told as it is.

    Inputs are joined there; a text with the sign between them makes more parts than there are inputs, and then every
    part that could be a path is taken for one. So it is where nothing is known of the inputs (files: None).
    """
    samples = report.get("samples")
    if (files is not None and not any(files)) or not isinstance(samples, list):
        return report
    for sample in samples:
        if not isinstance(sample, dict):
            continue
        parts = str(sample.get("input", "")).split(JOINED)
        known = files is not None and len(parts) == len(files)
        paths = files if known and files is not None else [Path(part).is_absolute() for part in parts]
        sample["input"] = JOINED.join(
            Path(part).name if path else part for part, path in zip(parts, paths, strict=True)
        )
    return report
