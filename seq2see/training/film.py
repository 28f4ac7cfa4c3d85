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

import numpy as np
import torch
from PIL import Image

from seq2see.data.batches import EOS
from seq2see.data.columns import Question, group_references
from seq2see.data.image_files import data_url
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import UserError
from seq2see.files import finite, unwritable, write_bytes
from seq2see.looks import Looks, Pixels, Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.devices import random_state, restore_random_state
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.scoring import given_ids
from seq2see.training.reports import update_of

# ---------------- One frame of a film

CONSIDERED = 100
PLACES, STEPS, CELLS = 256, 48, 6000
"""Of one map: the first so many columns and rows, and their product."""
LETTERS, PIXELS = 400, 160
FREELY = 10
"""Steps that a model may speak on beyond the longest reference."""

Record = dict[str, Any]


def examples(bundle: Bundle, dev: Sequence[Mapping[str, str]], number: int) -> list[Question]:
    """So many of the first dev inputs, from the shorter to the longer ones; none where there is nothing to see.

    The same rows give the same examples, so that a film goes on where it was left.
    """
    if not bundle.recipe.inputs or bundle.recipe.output.numeric or not number:
        return []
    asked = [question for question in group_references(dev[: 4 * CONSIDERED]) if any(question.references)][:CONSIDERED]
    files = {name for name, given in bundle.recipe.inputs.items() if given.file}

    def length(question: Question) -> int:
        texts = [value for name, value in question.inputs.items() if name not in files]
        return sum(map(len, texts)) + len(question.references[0])

    ordered = sorted(asked, key=length)
    number = min(number, len(ordered))
    return [ordered[(2 * one + 1) * len(ordered) // (2 * number)] for one in range(number)]


class Camera:
    """Takes the frames of some examples; what never changes is told once, by `scene`."""

    def __init__(self, bundle: Bundle, shown: Sequence[Question]):
        self.bundle, self.shown = bundle, shown
        self.rows = [question.inputs for question in shown]
        self.label = bundle.recipe.output.one_step
        self.longest = 1 if self.label else max(len(ids) for ids in self._targets())

    def take(self) -> tuple[list[Record], list[Record]]:
        """(what stays, what this frame shows), each with one record for every example."""
        if self.label:
            labels = len(self.bundle.fields.output.vocabulary.symbols)
            said = followed = predict([self.bundle], self.rows, options_of(self.bundle.recipe, n_best=labels))
        else:
            said, followed = self._said(), self._followed()
        scenes, frames = [], []
        for question, free, forced in zip(self.shown, said, followed, strict=True):
            scenes.append(self._scene(question, forced))
            frames.append(finite(_frame_of(question, free, forced)))
        return scenes, frames

    def _targets(self) -> list[list[int]]:
        made = [[*given_ids(self.bundle, one.inputs, one.references[0]), EOS] for one in self.shown]
        return [ids[:STEPS] for ids in made]

    def _followed(self) -> list[Prediction]:
        options = options_of(
            self.bundle.recipe,
            beam=1,
            n_best=1,
            prefix=self._targets(),
            min_length=0,
            max_length=self.longest,
            runners_up=0,
        )
        return predict([self.bundle], self.rows, options, replace_unknown=False)

    def _said(self) -> list[Prediction]:
        """Greedy, and cut where it rambles: a model that has not learned to end would cost the most time of all."""
        search = self.bundle.recipe.search
        most = min(search.max_length, self.longest + FREELY)
        least = min(search.min_length, most)
        options = options_of(self.bundle.recipe, beam=1, n_best=1, min_length=least, max_length=most, runners_up=0)
        return predict([self.bundle], self.rows, options)

    def _scene(self, question: Question, one: Prediction) -> Record:
        inputs = {name: self._told(name, value) for name, value in question.inputs.items()}
        outputs = [question.references[0]] if self.label else [token.text for token in one.tokens]
        told: Record = {"inputs": inputs, "reference": _short(question.references[0]), "outputs": outputs}
        looks = one.looks
        if not looks.maps:
            return told | {"reason": looks.reason}
        steps, places = _seen(looks)
        told["outputs"] = looks.rows.get(looks.name, outputs)[:steps]
        told |= {"map": looks.name, "places": looks.inputs[looks.name][:places], "layout": looks.layouts[looks.name]}
        if looks.weights.shape != (steps, places):
            told["of"] = list(looks.weights.shape)
        picture = looks.picture(looks.name)
        return told if picture is None else told | {"picture": data_url(_small(picture))}

    def _told(self, name: str, value: str) -> str:
        """Of a file its name: a film is shown to others, and where files lie is nobody's business."""
        return Path(value).name if self.bundle.recipe.inputs[name].file else _short(value)


def _frame_of(question: Question, free: Prediction, forced: Prediction) -> Record:
    """log_probability: of the reference; probabilities: of its symbols; weights: of the places, step by step."""
    told: Record = {"says": _short(str(free.answer))}
    if free.label is not None:
        found = [(free.label, free.log_probability)] + [(one.text, one.log_probability) for one in free.alternatives]
        log_probability = dict(found).get(question.references[0], -np.inf)
        told |= {
            "log_probability": round(log_probability, 4),
            "probabilities": [round(float(np.exp(log_probability)), 3)],
        }
    else:
        if free.tokens and free.tokens[-1].text != SPECIALS[EOS]:
            told["says"] += " …"
        told["log_probability"] = round(forced.log_probability, 4)
        told["probabilities"] = [round(token.probability, 3) for token in forced.tokens]
    if not forced.looks.maps:
        return told
    steps, places = _seen(forced.looks)
    told["probabilities"] = told["probabilities"][:steps]
    if forced.looks.name in forced.looks.rows:  # an encoder's own look, whose rows are no outputs
        del told["probabilities"]
    shown = np.round(forced.looks.weights[:steps, :places].astype(np.float64), 3)
    told["weights"] = [[value or 0 for value in row] for row in shown.tolist()]
    return told


def _seen(looks: Looks) -> tuple[int, int]:
    """How many steps and places of a map are shown."""
    steps, places = looks.weights.shape
    places = min(places, PLACES)
    return min(steps, STEPS, max(1, CELLS // max(places, 1))), places


def _short(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _small(picture: Pixels) -> Pixels:
    """A picture (height, width, channels), at most so many pixels wide and high."""
    flat = picture[..., 0] if picture.shape[2] == 1 else picture
    image = Image.fromarray(np.ascontiguousarray(flat))
    image.thumbnail((PIXELS, PIXELS))
    return np.asarray(image)


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
