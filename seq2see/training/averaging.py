"""The mean of the best weights of a run: often better than the best alone."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from seq2see.errors import UserError
from seq2see.pipeline.checksums import check_signed
from seq2see.pipeline.weights import read_tensors, write_tensors


def _path(folder: Path, update: float) -> Path:
    return folder / f"best-{int(update):09d}.safetensors"


def keep_best(
    folder: Path, weights: dict[str, Tensor], kept: list[list[float]], *, value: float, update: int, most: int
) -> list[list[float]]:
    """Keep these weights if they are among the `most` best; [value, update] of all that are kept, best first.

    Files that are kept no more stay until the next checkpoint (`forget`): a run killed before it still needs them.
    """
    ranked = sorted([*kept, [value, update]], key=lambda entry: (-entry[0], -entry[1]))
    if [value, update] in ranked[:most]:
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(_path(folder, update), weights)
    return ranked[:most]


def averaged(folder: Path, kept: list[list[float]]) -> dict[str, Tensor]:
    """The mean of the kept weights."""
    every = [read_tensors(_path(folder, update)) for _, update in kept]
    return {name: _mean([one[name] for one in every]) for name in every[0]}


def _mean(tensors: list[Tensor]) -> Tensor:
    """Of numbers their mean; what only counts (batches seen by a normalisation) is that of the first."""
    return torch.stack(tensors).mean(0) if tensors[0].is_floating_point() else tensors[0]


def still_there(folder: Path, kept: list[list[float]]) -> tuple[list[list[float]], list[str]]:
    """Those whose weights are on disk (a finished run, when it is gone on with, has none), and what is wrong with each
    that is damaged."""
    found, problems = [], []
    for entry in kept:
        path = _path(folder, entry[1])
        if path.is_file():
            try:
                check_signed(path)
                found.append(entry)
            except UserError as error:
                problems.append(str(error))
    return found, problems


def forget(folder: Path, *, but: list[list[float]]) -> None:
    """Remove the weights that are kept no more."""
    needed = {_path(folder, update) for _, update in but}
    for path in folder.glob("best-*.safetensors"):
        if path not in needed:
            path.unlink(missing_ok=True)
