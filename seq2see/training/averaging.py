"""The mean of the best weights of a run: often better than the best alone."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from seq2see.pipeline.weights import read_tensors, write_tensors


def _path(folder: Path, update: float) -> Path:
    return folder / f"best-{int(update):09d}.safetensors"


def keep_best(
    folder: Path, weights: dict[str, Tensor], kept: list[list[float]], *, value: float, update: int, most: int
) -> list[list[float]]:
    """Keep these weights if they are among the `most` best; [value, update] of all that are kept, best first."""
    ranked = sorted([*kept, [value, update]], key=lambda entry: (-entry[0], -entry[1]))
    for _, dropped in ranked[most:]:
        _path(folder, dropped).unlink(missing_ok=True)
    if [value, update] in ranked[:most]:
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(_path(folder, update), weights)
    return ranked[:most]


def averaged(folder: Path, kept: list[list[float]]) -> dict[str, Tensor]:
    """The mean of the kept weights."""
    every = [read_tensors(_path(folder, update)) for _, update in kept]
    return {name: torch.stack([one[name] for one in every]).mean(0) for name in every[0]}


def forget(folder: Path) -> None:
    """A finished run needs its kept weights no more."""
    for path in folder.glob("best-*.safetensors"):
        path.unlink(missing_ok=True)
