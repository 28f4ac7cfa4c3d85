"""Columns that hold sounds: paths in the table, frames in a batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seq2see.data.field import Chosen, kinds
from seq2see.data.media import MediaField
from seq2see.data.media_files import MediaError
from seq2see.data.mel import hop_of, middles_of
from seq2see.data.sounds import frames_of, heard
from seq2see.data.store import Ragged
from seq2see.errors import UserError
from seq2see.looks import Spectrogram
from seq2see.recipe.sound_settings import SoundAugmentSettings, SoundInput

CELL = 4
"""Frames that take about as much room in a batch as a symbol of text."""


@dataclass
class Frames:
    """What one column holds frame by frame, whatever a frame is made of.

    values: (batch, frames, size), 0 where there is nothing; mask: (batch, frames), True where a frame is real;
    names: what to call each real frame, where somebody will read it.
    """

    values: Float[Tensor, "batch frames size"]
    mask: Bool[Tensor, "batch frames"]
    names: list[list[str]] | None = None

    def to(self, device: torch.device | str) -> Frames:
        return replace(self, values=self.values.to(device), mask=self.mask.to(device))


@kinds.register("sound")
class SoundField(MediaField):
    """Files that libsndfile reads, as frames of log-mel energies."""

    settings: SoundInput

    def problem(self, value: str) -> str | None:
        try:
            self.decoder.sound(value, self.settings)
        except MediaError as error:
            return str(error)
        return None

    def width(self, value: str) -> int:
        try:
            frames = frames_of(*self.decoder.sound_length(value, self.settings), self.settings)
        except MediaError as error:
            raise UserError(f"{value}: {error}") from None
        return max(frames // CELL, 1)

    def shown(self, value: str) -> Spectrogram:
        """How loud each band is, as it was recorded: normalising would hide that silence is silent."""
        settings = self.settings.model_copy(update={"normalise": "none"})
        try:
            energies = heard(*self.decoder.sound(value, self.settings), settings).numpy()
        except MediaError as error:
            raise UserError(f"{Path(value)}: {error}") from None
        return Spectrogram(energies, hop_of(settings) / settings.rate, middles_of(settings).numpy())

    def pad(self, store: Ragged, rows: Chosen) -> Frames:
        """Stored rows, changed at random where the settings say so, by torch's own generator."""
        values = [self.value(store[int(row)]) for row in rows]
        if self.settings.augment == SoundAugmentSettings():
            return self._read(values, [None] * len(values))
        seeds = np.random.SeedSequence(int(torch.randint(1 << 62, ()))).spawn(len(values))
        return self._read(values, [np.random.default_rng(seed) for seed in seeds])

    def batch(self, values: Sequence[str]) -> Frames:
        """Values as they are; frames are named by the second at which they begin."""
        made = self._read(values, [None] * len(values))
        hop = self.settings.hop / 1000
        return replace(made, names=[[f"{i * hop:.2f} s" for i in range(int(row.sum()))] for row in made.mask])

    def _read(self, values: Sequence[str], randoms: Sequence[np.random.Generator | None]) -> Frames:
        with ThreadPoolExecutor(min(len(values), os.cpu_count() or 1) or 1) as pool:
            read = list(pool.map(self._one, values, randoms))
        mask = pad_sequence([torch.ones(len(one), dtype=torch.bool) for one in read], batch_first=True)
        return Frames(pad_sequence(read, batch_first=True), mask)

    def _one(self, value: str, random: np.random.Generator | None) -> Tensor:
        try:
            return heard(*self.decoder.sound(value, self.settings), self.settings, random)
        except MediaError as error:
            raise UserError(f"{Path(value)}: {error}") from None
