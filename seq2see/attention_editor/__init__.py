"""A notebook widget to edit attention: weights are dragged or clicked, and the model continues from there.

`Model.edit_attention` makes it (extra `notebook`). editor.js draws it; all predictions are made here, by the function
that it is given. The front end sends weights and nothing else, and they are checked like any input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from seq2see.errors import UserError
from seq2see.looks import Prediction
from seq2see.pipeline.inputs import unreached_steps

FOLDER = Path(__file__).resolve().parent
MOST_EDITS = 500
"""Steps that may be edited at once."""
MOST_PLACES = 200
"""Places that can still be told apart as bars."""
MOST_CHARACTERS = 400
"""Of a message, which may repeat what was sent."""

Predict = Callable[[dict[int, list[float]] | None], Prediction]
"""A prediction with the caller's weights at some steps; None: the model's own."""


class AttentionEditor(anywidget.AnyWidget):
    """The output of a model, its attention, and the output after some of that attention was changed.

    edits: {step: a weight for each place}, set by the front end (or from Python); weights are scaled to sum to one.
    original, edited: the predictions without and with the edits. error: why the last edits were refused; `edited` is
    then that of the edits before them. shown: what the front end draws.
    """

    _esm = FOLDER / "editor.js"
    _css = FOLDER / "editor.css"
    edits = traitlets.Any(None).tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, predict: Predict):
        self._predict = predict
        self.original = self.edited = predict(None)
        self.error = self.notice = ""
        self.places = _places(self.original)
        self.oracle: dict[int, list[float]] = {}
        super().__init__(edits={}, shown=self._state())

    @traitlets.observe("edits")
    def _recompute(self, change: Mapping[str, Any]) -> None:
        """Predict again with the new edits, or say what is wrong with them."""
        try:
            oracle = read_edits(change["new"], len(self.places))
            edited = self._predict(oracle) if oracle else self.original
        except UserError as error:
            self.error = str(error)[:MOST_CHARACTERS]
        else:
            self.edited, self.oracle, self.error = edited, oracle, ""
            self.notice = "; ".join(unreached_steps(oracle, [edited]))[:MOST_CHARACTERS]
        self.shown = self._state()

    def _state(self) -> dict[str, Any]:
        """What the front end draws."""
        return {
            "places": self.places,
            "original": _drawn(self.original),
            "edited": _drawn(self.edited),
            "steps": sorted(self.oracle),
            "error": self.error,
            "notice": self.notice,
        }

    def __repr__(self) -> str:
        """AttentionEditor('इंडिया' -> 'इंडीया'; edited steps: 2)"""
        steps = ", ".join(map(str, sorted(self.oracle))) or "none"
        refused = f"; the last edit was refused: {self.error}" if self.error else ""
        return f"AttentionEditor({self.original.answer!r} -> {self.edited.answer!r}; edited steps: {steps}{refused})"


def read_edits(edits: Any, places: int) -> dict[int, list[float]]:
    """Edits as `Model.predict` takes them, each step's weights summing to one.

    >>> read_edits({"2": [1, 3]}, places=2)
    {2: [0.25, 0.75]}
    """
    if not isinstance(edits, Mapping):
        raise UserError(f"edits: expected {{step: weights}}, got {type(edits).__name__}")
    if len(edits) > MOST_EDITS:
        raise UserError(f"edits: {len(edits):,} steps; at most {MOST_EDITS} can be edited at once")
    return {_step(key): _weights(values, _step(key), places) for key, values in edits.items()}


def _step(key: Any) -> int:
    text = str(key)
    if not (text.isascii() and text.isdecimal() and len(text) <= 6) or isinstance(key, bool):
        raise UserError(f"edits: step {text[:40]!r}; steps are whole numbers, counted from 0")
    return int(text)


def _weights(values: Any, step: int, places: int) -> list[float]:
    where = f"edits: step {step}"
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or len(values) != places:
        raise UserError(f"{where}: expected a list of {places} weights, one for each place")
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1e6:  # false for NaN too
            raise UserError(f"{where}: weight {str(value)[:40]!r}; weights are numbers of at least 0")
    total = float(sum(values))
    if total < 1e-9:
        raise UserError(f"{where}: all weights are 0; at least one place must be looked at")
    return [value / total for value in values]


def _places(prediction: Prediction) -> list[str]:
    """The places of the map that is edited; refused where they are not in a row, or too many to be drawn as bars."""
    looks = prediction.looks
    if not looks.maps:
        raise UserError(f"edit_attention: {looks.reason or 'this model has no attention to edit'}")
    shape = looks.layouts.get(looks.name, {}).get("shape", [0])
    if len(shape) != 1:
        raise UserError("edit_attention: the places are not in a row; `seq2see serve` edits them on the picture")
    places = looks.inputs[looks.name]
    if len(places) > MOST_PLACES:
        raise UserError(f"edit_attention: the input has {len(places):,} places; at most {MOST_PLACES} can be edited")
    return places


def _drawn(prediction: Prediction) -> dict[str, Any]:
    looks = prediction.looks
    probabilities = [round(token.probability, 4) for token in prediction.tokens]
    return {
        "answer": str(prediction.answer),
        "outputs": looks.outputs,
        "probabilities": probabilities if len(probabilities) == len(looks.outputs) else [],
        "weights": [[round(float(weight), 4) for weight in row] for row in looks.weights],
    }
