"""Recall of the input's symbols by where they stand in it: which end of the input does a model forget?"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError
from seq2see.evaluation.bootstrap import ratio_intervals
from seq2see.evaluation.rows import Rows, symbols


@dataclass(frozen=True)
class PositionBin:
    """The symbols that stand between two points of their inputs (0 the start, 1 the end), and the share found again;
    low, high: its 95 % interval over rows drawn anew, where that was asked for."""

    start: float
    end: float
    symbols: int
    recall: float
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def recall_by_position(rows: Rows, *, bins: int = 10, intervals: bool = False) -> list[PositionBin]:
    """For each part of the inputs the share of its symbols found anywhere in the outputs, from start to end.

    A symbol that stands k times in the input and m < k times in the output is found m / k each time, as nothing tells
    which of them came through; so the mean over all symbols is the metric `recall`. A symbol belongs to the part its
    middle lies in; parts that no symbol lies in (inputs shorter than `bins`) are left out.
    """
    if bins < 1:
        raise UserError(f"bins of positions: {bins} given; allowed: 1 or more")
    found, count = _counted(rows, bins)
    parts = np.flatnonzero(count.sum(0))
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * len(parts)
    if intervals and len(parts):
        bounds = [(one.low, one.high) for one in ratio_intervals(found[:, parts], count[:, parts])]
    return [
        PositionBin(
            part / bins,
            (part + 1) / bins,
            symbols=int(count[:, part].sum()),
            recall=float(found[:, part].sum() / count[:, part].sum()),
            low=low,
            high=high,
        )
        for part, (low, high) in zip(parts.tolist(), bounds, strict=True)
    ]


def _counted(rows: Rows, bins: int) -> tuple[Float[np.ndarray, "rows bins"], Float[np.ndarray, "rows bins"]]:
    """(symbols found again, symbols) of each row's parts."""
    found, count = np.zeros((len(rows), bins)), np.zeros((len(rows), bins))
    given = rows.need("inputs", "recall by position")
    for row, (text, prediction) in enumerate(zip(given, rows.predictions, strict=True)):
        wanted = symbols(text, rows.unit)
        times, said = Counter(wanted), Counter(symbols(prediction, rows.unit))
        for place, symbol in enumerate(wanted):
            part = (2 * place + 1) * bins // (2 * len(wanted))
            found[row, part] += min(1.0, said[symbol] / times[symbol])
            count[row, part] += 1
    return found, count
