"""Recall of the input's symbols by where they stand in it: which end of the input does a model forget?"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from seq2see.errors import UserError
from seq2see.evaluation.rows import Rows, symbols


@dataclass(frozen=True)
class PositionBin:
    """The symbols that stand between two points of their inputs (0 the start, 1 the end), and the share found again."""

    start: float
    end: float
    symbols: int
    recall: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def recall_by_position(rows: Rows, *, bins: int = 10) -> list[PositionBin]:
    """For each part of the inputs the share of its symbols found anywhere in the outputs, from start to end.

    A symbol that stands k times in the input and m < k times in the output is found m / k each time, as nothing tells
    which of them came through; so the mean over all symbols is the metric `recall`. A symbol belongs to the part its
    middle lies in; parts that no symbol lies in (inputs shorter than `bins`) are left out.
    """
    if bins < 1:
        raise UserError(f"bins of positions: {bins} given; allowed: 1 or more")
    found, count = [0.0] * bins, [0] * bins
    for given, prediction in zip(rows.need("inputs", "recall by position"), rows.predictions, strict=True):
        wanted = symbols(given, rows.unit)
        times, said = Counter(wanted), Counter(symbols(prediction, rows.unit))
        for place, symbol in enumerate(wanted):
            part = (2 * place + 1) * bins // (2 * len(wanted))
            found[part] += min(1.0, said[symbol] / times[symbol])
            count[part] += 1
    return [
        PositionBin(part / bins, (part + 1) / bins, symbols=count[part], recall=found[part] / count[part])
        for part in range(bins)
        if count[part]
    ]
