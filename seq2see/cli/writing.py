"""`--to TABLE`: the table of `--file` written back, the predictions as further columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.meter import Meter
from seq2see.cli.saying import say
from seq2see.errors import UserError, counted

if TYPE_CHECKING:
    from seq2see.cli.reading import Item, Source
    from seq2see.looks import Prediction

NAMES = ("prediction", "score")


def check_target(to: Path, file: Path | None, *, overwrite: bool) -> None:
    """A table is not written over the one it is made from unless that was asked for."""
    if file is None:
        raise UserError("--to writes the table of --file back with the predictions: give --file too")
    if not overwrite and to.exists() and file.exists() and to.samefile(file):
        raise UserError(f"--to {to}: that is the table of --file; give another, or --overwrite to replace it")


def write_back(
    path: Path, inputs: Source, told: Iterator[tuple[Item, Prediction]], *, n_best: int, scored: bool
) -> None:
    """Write the rows with their predictions, and say where they are; scored: outputs have a score."""
    from seq2see.data.tables import write

    ranks = columns_for(n_best, inputs.columns, scored=scored)
    added = [name for names in ranks for name in names]
    written, meter = 0, Meter()

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal written
        for item, prediction in told:
            written += 1
            meter("rows predicted", written)
            ranked: list[tuple[Any, ...]] = [(answer_of(prediction), None if prediction.reason else prediction.score)]
            ranked += [(other.text, other.score) for other in prediction.alternatives]
            row = dict(item.row)
            row |= {column: _from(path, item.inputs[name], row[column]) for name, column in inputs.files.items()}
            if isinstance(prediction.image, str):
                ranked[0] = (_from(path, prediction.image, prediction.image), prediction.score)
            for names, values in zip(ranks, ranked, strict=False):
                row |= zip(names, values, strict=False)
            yield row

    try:
        write(path, rows(), [*inputs.columns, *added])
    finally:
        meter.close()
    own = [name for rank in range(n_best) for name in _names(1, rank) if name in inputs.columns]
    why = f" (the table has {', '.join(own)} of its own)" if own else ""
    say(f"{counted(written, 'prediction')} in {path}, columns {', '.join(added)}{why}")


def _from(table: Path, file: str, written: str) -> str:
    """A file as the new table has to name it: paths in a table begin where it lies, unless they are whole."""
    return written if not written.strip() or Path(written).is_absolute() else os.path.relpath(file, table.parent)


def answer_of(prediction: Prediction) -> str:
    """The answer as text; numbers such that they can be read again."""
    if prediction.vector is None:
        return "" if prediction.answer is None else str(prediction.answer)
    from seq2see.data.numbers import written

    return written(prediction.vector)


def columns_for(n_best: int, taken: Collection[str], *, scored: bool = True) -> list[tuple[str, ...]]:
    """(prediction, score) columns for each rank; where the table has any of these, all of them are another run's.

    >>> columns_for(2, ["word"])
    [('prediction', 'score'), ('prediction_2', 'score_2')]
    >>> columns_for(2, ["word", "score"])
    [('prediction_run2', 'score_run2'), ('prediction_run2_2', 'score_run2_2')]
    """
    for run in count(1):
        found = [_names(run, rank)[: 1 + scored] for rank in range(n_best)]
        if not any(name in taken for names in found for name in names):
            return found
    raise AssertionError("there is always a name that is free")


def _names(run: int, rank: int) -> tuple[str, ...]:
    ending = ("" if run == 1 else f"_run{run}") + ("" if rank == 0 else f"_{rank + 1}")
    return tuple(f"{name}{ending}" for name in NAMES)
