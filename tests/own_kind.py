"""A kind of files of one's own, as a plug-in brings it: digits in a text file. Its module imports torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from seq2see.data.media_files import MediaError, MediaSettings
from seq2see.looks import Drawable
from seq2see.seeing.overlays import TimeOverlay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from seq2see.seeing.sheet import Style


class DigitsInput(MediaSettings):
    """Files of digits, which are multiplied by `factor`; the second array is the process that read them."""

    decoded_arrays: ClassVar[int] = 2
    noun: ClassVar[str] = "some digits"
    media: ClassVar[str] = ".txt"
    kind: Literal["digits"] = "digits"
    factor: int = 1

    def decode(self, path: str) -> list[NDArray[Any]]:
        text = Path(path).read_text("ascii")
        if not text.isdigit():
            raise MediaError("not a row of digits")
        return [(self.factor * torch.tensor([int(digit) for digit in text])).numpy(), np.asarray(os.getpid())]


@dataclass(frozen=True)
class Digits(Drawable):
    """Digits to be drawn as a line."""

    view: ClassVar[str] = f"{__name__}:DigitsOverlay"
    values: list[int]


class DigitsOverlay(TimeOverlay):
    """A line of digits above the weights."""

    input: Digits
    description: ClassVar[str] = "digits with their weights"
    axis: ClassVar[str] = "position"

    @classmethod
    def span(cls, drawable: Digits) -> tuple[float, float]:
        return 0.0, float(len(drawable.values))

    def draw_input(self, axes: Axes, style: Style) -> None:
        axes.plot(np.arange(len(self.input.values)) + 0.5, self.input.values, color=style.theme.ink)
        axes.set_gid("digits")
