"""film.jsonl in a run's folder: how the attention of a few dev examples changes while the model learns.

The first line tells the examples, each further one is a frame. Which updates have a frame follows from their numbers
alone: a run that was killed and resumed has the film of one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from seq2see.data.output import unwritable, write_bytes
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.devices import random_state, restore_random_state
from seq2see.training.frames import Camera, Record, examples
from seq2see.training.reports import update_of

FILM = "film.jsonl"
VERSION = 1
GROWTH, AT_REPORTS = 1.3, 1.1
"""A frame is due once there are so many times as many updates as at the last one; a little sooner at reports. So early
changes, which are the largest, are seen one by one, and a long run has a few dozen frames."""


def due(update: int, last: int, *, reported: bool) -> bool:
    """Whether a frame is to be taken now, the last one being of update `last`.

    >>> taken = [0]
    >>> for update in range(1, 10_001):
    ...     if due(update, taken[-1], reported=update % 500 == 0):
    ...         taken.append(update)
    >>> taken[:12], len(taken)
    ([0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 34], 39)
    """
    return update > last and update >= last * (AT_REPORTS if reported else GROWTH)


class Film:
    """Takes frames while a run goes, and writes them down. Nothing in the run depends on whether it is there."""

    def __init__(self, bundle: Bundle, dev: Sequence[Mapping[str, str]], *, folder: Path):
        self.path = folder / FILM
        self.bundle, self.last = bundle, 0
        shown = examples(bundle, dev, bundle.recipe.training.film)
        self.camera = Camera(bundle, shown) if shown else None

    def begin(self, update: int, *, epoch: float, seconds: float, resumed: bool) -> None:
        """A new film; or the old one, as far as the checkpoint (of that update) knows of it, if it is of the same
        examples."""
        if self.camera is None:
            return
        scenes, frames = self._taken(self.camera)
        head = _line({"film": VERSION, "examples": scenes})
        kept = _frames(self.path, head, up_to=update) if resumed else []
        lines = kept or [_frame(update, epoch, seconds, frames)]
        write_bytes(self.path, b"".join([head, *lines]))
        self.last = int(update_of(lines[-1]))

    def after(self, update: int, *, epoch: float, seconds: float, reported: bool, finished: bool) -> None:
        """Told after each update; a frame is taken where one is due, and of the last update in any case. Of a model
        that has just diverged there is nothing to be seen: the training itself tells what happened."""
        if self.camera is None or not (due(update, self.last, reported=reported) or finished) or update == self.last:
            return
        try:
            frame = _frame(update, epoch, seconds, self._taken(self.camera)[1])
        except (UserError, ValueError):
            return
        try:
            with self.path.open("ab") as file:
                file.write(frame)
        except OSError as error:
            raise unwritable(self.path, error) from None
        self.last = update

    def _taken(self, camera: Camera) -> tuple[list[Record], list[Record]]:
        with _unnoticed(self.bundle):
            return camera.take()


@contextmanager
def _unnoticed(bundle: Bundle) -> Iterator[None]:
    """Without dropout, and with the random numbers afterwards that there were before, whatever a network draws."""
    training, drawn = bundle.network.training, random_state(bundle.device)
    bundle.network.eval()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        restore_random_state(bundle.device, drawn)
        bundle.network.train(training)


def _line(record: Mapping[str, Any]) -> bytes:
    made = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return made.encode("utf-8", "replace") + b"\n"


def _frame(update: int, epoch: float, seconds: float, frames: list[Record]) -> bytes:
    return _line({"update": update, "epoch": round(epoch, 4), "seconds": round(seconds, 2), "examples": frames})


def _frames(path: Path, head: bytes, *, up_to: int) -> list[bytes]:
    """The whole frames of an earlier sitting; none where its examples were others."""
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    if lines[:1] != [head]:
        return []
    return [line for line in lines[1:] if line.endswith(b"\n") and update_of(line) <= up_to]
