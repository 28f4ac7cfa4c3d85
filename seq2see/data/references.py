"""Rows with equal inputs are references of each other: one question, several right answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from seq2see.data.columns import ALIGNMENT, OUTPUT


@dataclass
class Question:
    """One distinct input, all outputs given for it, and the numbers of the rows they stand in."""

    inputs: dict[str, str]
    references: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


def group(rows: Iterable[Mapping[str, str]]) -> list[Question]:
    """Distinct inputs in the order in which they first appear, each with its references in theirs.

    Where there are no inputs at all (language models) every row stands alone.

    >>> group([{"word": "a", "output": "AH"}, {"word": "a", "output": "EY"}])[0].references
    ['AH', 'EY']
    """
    questions: dict[tuple[str, ...], Question] = {}
    for number, row in enumerate(rows):
        inputs = {name: value for name, value in row.items() if name not in (OUTPUT, ALIGNMENT)}
        key = tuple(inputs.values()) if inputs else (str(number),)
        question = questions.setdefault(key, Question(inputs))
        question.rows.append(number)
        if OUTPUT in row:
            question.references.append(row[OUTPUT])
    return list(questions.values())
