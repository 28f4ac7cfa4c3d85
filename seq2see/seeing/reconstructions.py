"""Pictures beside what models made of them: a row for each model, a column for each picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import UserError
from seq2see.seeing.saving import save_figure
from seq2see.seeing.style import theme_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 0.62
LETTER = 0.085
"""Inches of a cell, and of a letter of the names beside the rows."""


def reconstruction_sheet(
    rows: Mapping[str, Sequence[NDArray[np.floating] | NDArray[np.uint8]]],
    *,
    title: str | None = None,
    path: str | Path | None = None,
    theme: str = "light",
) -> Figure:
    """Rows of pictures by name (what was given, what was read, what came out), one column for each picture.

    A picture is (height, width), grey, or (height, width, 3); bytes from 0 to 255, other numbers from 0 to 1, and what
    lies beyond is drawn as black or white.
    """
    from matplotlib.figure import Figure

    numbers = {name: len(pictures) for name, pictures in rows.items()}
    if not numbers or len(set(numbers.values())) != 1 or not min(numbers.values()):
        said = ", ".join(f"{name} {number}" for name, number in numbers.items()) or "none"
        raise UserError(f"a sheet needs rows of as many pictures, at least one each; given: {said}")
    columns, colours = next(iter(numbers.values())), theme_named(theme)
    side = 0.3 + LETTER * max(map(len, rows))
    top = 0.5 if title else 0.15
    width, height = side + columns * SIDE + 0.15, top + len(rows) * SIDE + 0.15
    figure = Figure(figsize=(width, height), facecolor=colours.paper)
    if title:
        figure.text(0.15 / width, 1 - 0.3 / height, title, color=colours.ink, fontsize=12, fontweight="bold")
    for down, (name, pictures) in enumerate(rows.items()):
        upper = top + down * SIDE
        where = 1 - (upper + SIDE / 2) / height
        figure.text((side - 0.1) / width, where, name, color=colours.muted, fontsize=9.5, ha="right", va="center")
        for across, picture in enumerate(pictures):
            left = (side + across * SIDE) / width
            cell = 0.94 * SIDE
            axes = figure.add_axes((left, 1 - (upper + cell) / height, cell / width, cell / height))
            axes.imshow(between(picture), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_axis_off()
    if path is not None:
        save_figure(figure, path)
    return figure


def between(picture: NDArray[np.floating] | NDArray[np.uint8]) -> NDArray[np.float64]:
    """The same picture from 0 to 1."""
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[-1] != 3):
        raise UserError(f"a picture is (height, width) or (height, width, 3), got {picture.shape}")
    top = 255.0 if picture.dtype == np.uint8 else 1.0
    return np.asarray(picture, dtype=np.float64).clip(0, top) / top
