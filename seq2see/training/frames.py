"""One frame of a film: how a model looks at fixed examples while it is made to say what it should say of them.

The reference is followed symbol by symbol, so that the rows of a map mean the same in every frame; beside it stands
what the model says by itself. All that grows with an input is bounded: places, steps, letters, pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from seq2see.data.batches import EOS
from seq2see.data.media import MediaField
from seq2see.data.pictures import data_url
from seq2see.data.references import Question, group
from seq2see.data.vocabulary import SPECIALS
from seq2see.looks import Looks, Pixels, Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.plain import finite
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.prefixes import given_ids

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
    asked = [question for question in group(dev[: 4 * CONSIDERED]) if any(question.references)][:CONSIDERED]
    files = {name for name, field in bundle.fields.inputs.items() if isinstance(field, MediaField)}

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
            frames.append(finite(_frame(question, free, forced)))
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
        return Path(value).name if isinstance(self.bundle.fields.inputs[name], MediaField) else _short(value)


def _frame(question: Question, free: Prediction, forced: Prediction) -> Record:
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
