"""Pictures that a model gives: paths in the table, pixels from 0 to 1 in a batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from seq2see.data.batches import Numbers
from seq2see.data.field import Chosen, NumericField, written
from seq2see.data.media import MediaField
from seq2see.data.media_files import Job, MediaError
from seq2see.data.store import Ragged
from seq2see.errors import UserError
from seq2see.settings.inputs import ImageInput
from seq2see.settings.outputs import ImageOutput

CELL = 32 * 32


@written.register("image")
class ImageOutputField(MediaField, NumericField):
    """Pixels one behind the other: channel by channel, row by row."""

    settings: ImageOutput

    def __init__(self, settings: ImageOutput, *, output: bool = True):
        super().__init__(settings, output=output)
        kept = settings.model_dump(include={"height", "width", "fit", "colour"})
        self.reading = ImageInput(**kept)

    @property
    def size(self) -> int:
        """Pixels, each channel counted."""
        return int(np.prod(self.settings.shape))

    def problem(self, value: str) -> str | None:
        try:
            self.decoder.check_picture(value, self.reading)
        except MediaError as error:
            return str(error)
        return None

    def jobs(self, value: str, *, shown: bool = False) -> list[Job]:
        return [Job(value, self.reading)]

    def width(self, value: str) -> int:
        return max(self.settings.height * self.settings.width // CELL, 1)

    def pad(self, store: Ragged, rows: Chosen) -> Numbers:
        return self.batch([self.value(store[int(row)]) for row in rows])

    def batch(self, values: Sequence[str]) -> Numbers:
        with ThreadPoolExecutor(min(len(values), os.cpu_count() or 1) or 1) as pool:
            pictures = list(pool.map(self.numbers, values))
        return Numbers(torch.from_numpy(np.stack(pictures).astype(np.float32)))

    def numbers(self, value: str) -> NDArray[np.float64]:
        try:
            pixels = self.decoder.picture(value, self.reading)
        except MediaError as error:
            raise UserError(f"{Path(value)}: {error}") from None
        return pixels.astype(np.float64).ravel() / 255

    def restored(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        return np.asarray(values, dtype=np.float64).clip(0, 1)

    def picture(self, numbers: NDArray[np.floating]) -> NDArray[np.uint8]:
        """(height, width), or (height, width, 3), from 0 to 255: as files hold it."""
        shaped = np.rint(255 * numbers).astype(np.uint8).reshape(self.settings.shape).transpose(1, 2, 0)
        return np.asarray(shaped[..., 0] if shaped.shape[-1] == 1 else shaped)
