"""Outputs that are numbers, on their way from a network to a person and to whoever measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from seq2see.data.columns import OUTPUT, Question
from seq2see.errors import UserError
from seq2see.evaluation import Rows
from seq2see.looks import Looks, Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.search import Hypothesis, SearchOptions, Source, reconstruct

PIXEL = 255.0


def reconstructed(
    bundles: Sequence[Bundle], readings: Sequence[Source], rows: Sequence[int], options: SearchOptions, *, maps: bool
) -> list[list[Hypothesis]]:
    """What models give, as plain numbers: of an ensemble the mean (its looks are those of its first model)."""
    each = [
        reconstruct(reading, rows, oracle=options.oracle if number == 0 else None, maps=maps and number == 0)
        for number, reading in enumerate(readings)
    ]
    found = []
    for several in zip(*each, strict=True):
        plain = [_plain(bundle, one) for bundle, one in zip(bundles, several, strict=True)]
        found.append([replace(several[0], numbers=np.mean(plain, axis=0))])
    return found


def _plain(bundle: Bundle, one: Hypothesis) -> NDArray[np.float64]:
    assert one.numbers is not None
    return bundle.fields.numeric_output.restored(one.numbers)


def given_back(fields: Fields, given: object, one: Hypothesis, looks: Looks) -> Prediction:
    """A Prediction from plain numbers: a vector, or the picture they make."""
    assert one.numbers is not None
    looks.pictures[OUTPUT] = partial(fields.numeric_output.drawn, one.numbers)
    return Prediction(given, **fields.numeric_output.answer(one.numbers), looks=looks)


def judged_rows(fields: Fields, questions: Sequence[Question], predictions: Sequence[Prediction]) -> Rows:
    """Predictions beside what the table says, as numbers."""
    field, nothing = fields.numeric_output, [""] * len(questions)
    continued = [field.continued(question.inputs, fields.inputs) for question in questions]
    known = [numbers for numbers in continued if numbers is not None]
    return Rows(
        nothing,
        [[""]] * len(questions),
        numbers=[plain_numbers(one) for one in predictions],
        true_numbers=[[field.numbers(reference) for reference in question.references] for question in questions],
        continued=known if len(known) == len(continued) else None,
    )


def plain_numbers(prediction: Prediction) -> NDArray[np.float64]:
    """A vector as it is, row by row where it has rows; the pixels of a picture from 0 to 1, channel by channel."""
    if prediction.image is None:
        return np.array(prediction.vector).ravel()
    assert not isinstance(prediction.image, str)
    pixels = prediction.image if prediction.image.ndim == 3 else prediction.image[..., None]
    return pixels.transpose(2, 0, 1).ravel() / PIXEL


def check_as_many(one: Fields, other: Fields) -> None:
    """Models whose numbers can be averaged."""
    if one.output.size != other.output.size:
        raise UserError(
            f"an ensemble needs models that give as many numbers, got {one.output.size:,} and {other.output.size:,}"
        )
