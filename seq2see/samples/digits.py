"""Handwritten digits of 8 x 8 pixels, from the `scikit-learn` package: for autoencoders, or to be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from seq2see.data.tables import write as write_table
from seq2see.errors import imported
from seq2see.samples.base import Written

COLUMNS = ("image", "x", "label")
BRIGHTEST = 16
"""Pixels are from 0 to this, in the package and in column `x`; in pictures to 255."""

DEV_EVERY = 5
"""Each fifth digit is for dev: writers come one after the other in the package, so both parts hold digits of all."""


def write(folder: Path) -> Written:
    """train.tsv and dev.tsv; `image` is the picture, `x` its 64 numbers row by row, `label` the digit."""
    found = imported("sklearn.datasets", extra="samples").load_digits()
    numbers = np.arange(len(found.target))
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number in numbers:
        pixels = (found.images[number] / BRIGHTEST * 255).round().astype(np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
    parts = {"train.tsv": numbers % DEV_EVERY != 0, "dev.tsv": numbers % DEV_EVERY == 0}
    for name, chosen in parts.items():
        write_table(folder / name, _rows(found, numbers[chosen].tolist()), COLUMNS)
    return {name: int(chosen.sum()) for name, chosen in parts.items()}


def _rows(found: Any, numbers: list[int]) -> Iterator[Mapping[str, str]]:
    for number in numbers:
        pixels = " ".join(f"{value:g}" for value in found.data[number])
        yield {"image": f"images/{number}.png", "x": pixels, "label": str(found.target[number])}
