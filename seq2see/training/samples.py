"""A few outputs beside what they should be, for a person who follows a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seq2see.data.references import Question
from seq2see.evaluation.metrics import measure
from seq2see.evaluation.rows import Rows, Unit, symbols
from seq2see.evaluation.strings import edit_distance
from seq2see.looks import Prediction
from seq2see.recipe import Recipe

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
    whole = "accuracy" if recipe.output.kind == "label" else "exact"
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
