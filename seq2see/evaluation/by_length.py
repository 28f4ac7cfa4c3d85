"""Quality against the length of the input, and recall of the input by position."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError
from seq2see.evaluation.base import Rows, symbols
from seq2see.evaluation.bootstrap import ratio_intervals
from seq2see.evaluation.metrics import measure

# ---------------- Quality against input length


@dataclass(frozen=True)
class LengthBin:
    """The rows whose inputs have `shortest` to `longest` symbols, as found in the data."""

    shortest: int
    longest: int
    mean_length: float
    rows: int
    metrics: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def input_lengths(rows: Rows) -> list[int]:
    """Symbols in each input."""
    return [len(symbols(text, rows.input_unit or rows.unit)) for text in rows.need("inputs", "quality by length")]


def equal_count_edges(lengths: Sequence[int], bins: int) -> list[int]:
    """Edges that part the rows into about equally many; rows of one length are never parted, so bins may be fewer.

    An edge is the first length of the next bin.

    >>> equal_count_edges([1, 1, 2, 5, 5, 9], 3)
    [2, 9]
    """
    if bins < 1:
        raise UserError(f"bins of lengths: {bins} given; allowed: 1 or more")
    edges: list[int] = []
    held, left = 0, len(lengths)
    for length, rows in sorted(Counter(lengths).items()):
        share = left / (bins - len(edges))
        if held and len(edges) < bins - 1 and share - held < held + rows - share:  # fuller would be further from it
            edges.append(length)
            held, left = 0, left - held
        held += rows
    return edges


def check_edges(edges: Sequence[int]) -> list[int]:
    """Edges that somebody gave, if they can part lengths."""
    if any(first >= second for first, second in pairwise(edges)):
        raise UserError(f"edges of lengths must rise: {list(edges)} given")
    return list(edges)


def quality_by_length(
    names: Sequence[str],
    rows: Rows,
    *,
    bins: int = 5,
    edges: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
) -> list[LengthBin]:
    """The metrics of rows of like length, from short to long; bins without rows are left out.

    edges: the first length of each bin but the first ([10, 20]: up to 9, 10 to 19, 20 and more), in place of `bins`
    of about equally many rows; lengths: of the inputs, where they are not texts.
    """
    if lengths is None:
        lengths = input_lengths(rows)
    elif len(lengths) != len(rows):
        raise ValueError(f"{len(rows)} rows, but {len(lengths)} lengths")
    edges = equal_count_edges(lengths, bins) if edges is None else check_edges(edges)
    held: list[list[int]] = [[] for _ in range(len(edges) + 1)]
    for row, length in enumerate(lengths):
        held[bisect_right(edges, length)].append(row)
    return [_bin(names, rows, chosen=chosen, lengths=lengths) for chosen in held if chosen]


def _bin(names: Sequence[str], rows: Rows, *, chosen: list[int], lengths: Sequence[int]) -> LengthBin:
    found = [lengths[row] for row in chosen]
    return LengthBin(
        shortest=min(found),
        longest=max(found),
        mean_length=sum(found) / len(found),
        rows=len(chosen),
        metrics=measure(names, rows.select(chosen)),
    )


# ---------------- Recall of the input's symbols by where they stand in it


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
