"""The film of a run: how the attention of a few dev examples changes while the model learns, as film.jsonl.

The first line has the examples, each further one is a frame. Which updates have a frame depends on their numbers alone,
so that a resumed run has the same film.
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

from seq2see.data.columns import Question, group_references
from seq2see.data.image_files import data_url
from seq2see.data.vocabulary import EOS, SPECIALS
from seq2see.errors import UserError
from seq2see.files import finite, unwritable, write_bytes
from seq2see.looks import Looks, Pixels, Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.scoring import prefix_ids
from seq2see.search.options import NONE
from seq2see.training.checkpoints import random_state, restore_random_state
from seq2see.training.reports import update_of

CONSIDERED = 100
PLACES, STEPS, CELLS = 256, 48, 6000
"""The largest attention map: columns, rows, and cells."""
LETTERS, PIXELS = 400, 160
FREELY = 10
"""Steps of a free output beyond the longest reference."""

Record = dict[str, Any]


def examples(bundle: Bundle, dev: Sequence[Mapping[str, str]], number: int) -> list[Question]:
    """Some of the first dev inputs, from short to long; none where there is no attention to see.

    The same rows give the same examples, so that a resumed run continues its film.
    """
    if not bundle.recipe.inputs or bundle.recipe.output.numeric or not number:
        return []
    grouped = group_references(dev[: 4 * CONSIDERED])
    questions = [question for question in grouped if any(question.references)][:CONSIDERED]
    files = {name for name, settings in bundle.recipe.inputs.items() if settings.file}

    def length(question: Question) -> int:
        texts = [value for name, value in question.inputs.items() if name not in files]
        return sum(map(len, texts)) + len(question.references[0])

    ordered = sorted(questions, key=length)
    number = min(number, len(ordered))
    return [ordered[(2 * index + 1) * len(ordered) // (2 * number)] for index in range(number)]


class Camera:
    """Takes frames of some examples; what never changes is in the scenes."""

    def __init__(self, bundle: Bundle, questions: Sequence[Question]):
        self.bundle, self.questions = bundle, questions
        self.rows = [question.inputs for question in questions]
        self.label = bundle.recipe.output.one_step
        self.longest = 1 if self.label else max(len(ids) for ids in self._targets())

    def take(self) -> tuple[list[Record], list[Record]]:
        """(scenes, frames): what stays, and what this frame shows, with one record for every example."""
        if self.label:
            labels = len(self.bundle.fields.output.vocabulary.symbols)
            free = forced = predict([self.bundle], self.rows, options_of(self.bundle.recipe, n_best=labels))
        else:
            free, forced = self._free(), self._forced()
        scenes, frames = [], []
        for question, own, reference in zip(self.questions, free, forced, strict=True):
            scenes.append(self._scene(question, reference))
            frames.append(finite(_frame_of(question, own, reference)))
        return scenes, frames

    def _targets(self) -> list[list[int]]:
        targets = [
            [*prefix_ids(self.bundle, question.inputs, question.references[0]), EOS] for question in self.questions
        ]
        return [ids[:STEPS] for ids in targets]

    def _forced(self) -> list[Prediction]:
        """Predictions of the references (teacher forcing)."""
        options = options_of(
            self.bundle.recipe,
            beam=1,
            n_best=1,
            prefix=self._targets(),
            min_length=0,
            max_length=self.longest,
            runners_up=0,
            language_model=NONE,
        )
        return predict([self.bundle], self.rows, options, replace_unknown=False)

    def _free(self) -> list[Prediction]:
        """Greedy predictions of limited length, as a model that has not learned to end takes the most time."""
        search = self.bundle.recipe.search
        most = min(search.max_length, self.longest + FREELY)
        least = min(search.min_length, most)
        options = options_of(
            self.bundle.recipe,
            beam=1,
            n_best=1,
            min_length=least,
            max_length=most,
            runners_up=0,
            language_model=NONE,
        )
        return predict([self.bundle], self.rows, options)

    def _scene(self, question: Question, prediction: Prediction) -> Record:
        inputs = {name: self._show(name, value) for name, value in question.inputs.items()}
        outputs = [question.references[0]] if self.label else [token.text for token in prediction.tokens]
        record: Record = {"inputs": inputs, "reference": _short(question.references[0]), "outputs": outputs}
        looks = prediction.looks
        if not looks.maps:
            return record | {"reason": looks.reason}
        steps, places = _shown_size(looks)
        record["outputs"] = looks.rows.get(looks.name, outputs)[:steps]
        record |= {"map": looks.name, "places": looks.inputs[looks.name][:places], "layout": looks.layouts[looks.name]}
        if looks.weights.shape != (steps, places):
            record["of"] = list(looks.weights.shape)
        picture = looks.picture(looks.name)
        return record if picture is None else record | {"picture": data_url(_small(picture))}

    def _show(self, name: str, value: str) -> str:
        """The value of an input; of a file its name alone, as a film may be shown to others."""
        return Path(value).name if self.bundle.recipe.inputs[name].file else _short(value)


def _frame_of(question: Question, free: Prediction, forced: Prediction) -> Record:
    """log_probability: of the reference; probabilities: of its symbols; weights: of the places, step by step."""
    record: Record = {"says": _short(str(free.answer))}
    if free.label is not None:
        labels = {free.label: free.log_probability} | {other.text: other.log_probability for other in free.alternatives}
        log_probability = labels.get(question.references[0], -np.inf)
        record |= {
            "log_probability": round(log_probability, 4),
            "probabilities": [round(float(np.exp(log_probability)), 3)],
        }
    else:
        if free.tokens and free.tokens[-1].text != SPECIALS[EOS]:
            record["says"] += " …"
        record["log_probability"] = round(forced.log_probability, 4)
        record["probabilities"] = [round(token.probability, 3) for token in forced.tokens]
    if not forced.looks.maps:
        return record
    steps, places = _shown_size(forced.looks)
    record["probabilities"] = record["probabilities"][:steps]
    if forced.looks.name in forced.looks.rows:  # self-attention of an encoder, whose rows are not outputs
        del record["probabilities"]
    weights = np.round(forced.looks.weights[:steps, :places].astype(np.float64), 3)
    record["weights"] = [[value or 0 for value in row] for row in weights.tolist()]
    return record


def _shown_size(looks: Looks) -> tuple[int, int]:
    """(steps, places) of a map that are shown."""
    steps, places = looks.weights.shape
    places = min(places, PLACES)
    return min(steps, STEPS, max(1, CELLS // max(places, 1))), places


def _short(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _small(picture: Pixels) -> Pixels:
    """A picture (height, width, channels) as a thumbnail."""
    flat = picture[..., 0] if picture.shape[2] == 1 else picture
    image = Image.fromarray(np.ascontiguousarray(flat))
    image.thumbnail((PIXELS, PIXELS))
    return np.asarray(image)


FILM = "film.jsonl"
VERSION = 1
GROWTH, AT_REPORTS = 1.3, 1.1
"""A frame is due when there are so many times as many updates as at the last one; a little sooner at reports. So early
changes, which are the largest, are all there, and a long run has a few dozen frames."""


def due(update: int, last: int, *, reported: bool) -> bool:
    """Whether a frame is due, where the last one is of update `last`.

    >>> taken = [0]
    >>> for update in range(1, 10_001):
    ...     if due(update, taken[-1], reported=update % 500 == 0):
    ...         taken.append(update)
    >>> taken[:12], len(taken)
    ([0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 34], 39)
    """
    return update > last and update >= last * (AT_REPORTS if reported else GROWTH)


class Film:
    """Writes frames while a run goes, without any effect on the run."""

    def __init__(self, bundle: Bundle, dev: Sequence[Mapping[str, str]], *, folder: Path):
        self.path = folder / FILM
        self.bundle, self.last = bundle, 0
        questions = examples(bundle, dev, bundle.recipe.training.film)
        self.camera = Camera(bundle, questions) if questions else None

    def begin(self, update: int, *, epoch: float, seconds: float, resumed: bool) -> None:
        """Start a new film, or on resuming continue the old one from the checkpoint's update, if its examples are the
        same."""
        if self.camera is None:
            return
        scenes, frames = self._take(self.camera)
        head = _line({"film": VERSION, "examples": scenes})
        kept = _frames(self.path, head, up_to=update) if resumed else []
        lines = kept or [_frame(update, epoch, seconds, frames)]
        write_bytes(self.path, b"".join([head, *lines]))
        self.last = int(update_of(lines[-1]))

    def after(self, update: int, *, epoch: float, seconds: float, reported: bool, finished: bool) -> None:
        """Called after each update: takes a frame where one is due, and always of the last update. There is none of a
        model that has just diverged."""
        if self.camera is None or not (due(update, self.last, reported=reported) or finished) or update == self.last:
            return
        try:
            frame = _frame(update, epoch, seconds, self._take(self.camera)[1])
        except (UserError, ValueError):
            return
        try:
            with self.path.open("ab") as file:
                file.write(frame)
        except OSError as error:
            raise unwritable(self.path, error) from None
        self.last = update

    def _take(self, camera: Camera) -> tuple[list[Record], list[Record]]:
        with _no_effect(self.bundle):
            return camera.take()


@contextmanager
def _no_effect(bundle: Bundle) -> Iterator[None]:
    """Evaluate without dropout, and restore the random states afterwards."""
    training, state = bundle.network.training, random_state(bundle.device)
    bundle.network.eval()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        restore_random_state(bundle.device, state)
        bundle.network.train(training)


def _line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def _frame(update: int, epoch: float, seconds: float, frames: list[Record]) -> bytes:
    return _line({"update": update, "epoch": round(epoch, 4), "seconds": round(seconds, 2), "examples": frames})


def _frames(path: Path, head: bytes, *, up_to: int) -> list[bytes]:
    """The complete frames of the run before it was resumed; none where its examples were others."""
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    if lines[:1] != [head]:
        return []
    return [line for line in lines[1:] if line.endswith(b"\n") and update_of(line) <= up_to]
