"""Sounds: files in a table, frames of log-mel energies in a batch.

On the way to a batch (`SoundField.pad` in training, `batch` otherwise) each file is decoded and mixed to one channel
(`data/sound_files.py`), augmented, resampled and turned into frames (`sound_features`), padded to one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seq2see.data.batches import Frames, Ragged
from seq2see.data.log_mel import centre_frequencies, frames_in, hertz, hop_of, log_mels, mel
from seq2see.data.media_files import MediaError
from seq2see.data.sound_files import Samples, SoundAugmentSettings, SoundInput, resample, samples_of
from seq2see.errors import UserError
from seq2see.looks import Drawable
from seq2see.modalities.base import FRAMES_PER_SYMBOL, Chosen, Example, FrameOcclusion, Occlusion, inputs, random_frames
from seq2see.modalities.files import MediaField
from seq2see.modalities.image import pixels_preview
from seq2see.settings.columns import ColumnSettings
from seq2see.threads import cores

# --- Other voices and rooms

KNOTS = 5
"""Heights that are drawn for a filter, from the lowest band to the highest."""


def shift_spectrum(
    frames: Float[Tensor, "frames mels"], higher: float, settings: SoundInput
) -> Float[Tensor, "frames mels"]:
    """Frames whose spectrum is shifted by a factor, interpolated between bands; the last band is repeated."""
    middles = torch.from_numpy(mel(centre_frequencies(settings))).float()
    source = torch.from_numpy(mel(hertz(middles.double().numpy()) / higher)).float()
    place = ((source - middles[0]) / (middles[-1] - middles[0]) * (settings.mels - 1)).clamp(0, settings.mels - 1)
    below = place.floor().long().clamp(max=max(settings.mels - 2, 0))
    above = (below + 1).clamp(max=settings.mels - 1)
    share = place - below
    return frames[:, below] * (1 - share) + frames[:, above] * share


def equalise(
    frames: Float[Tensor, "frames mels"], amount: float, random: np.random.Generator
) -> Float[Tensor, "frames mels"]:
    """Frames with a random piecewise-linear curve over the bands added to each."""
    mels = frames.shape[1]
    heights = random.uniform(-amount, amount, KNOTS)
    curve = np.interp(np.linspace(0, KNOTS - 1, mels), np.arange(KNOTS), heights)
    return frames + torch.from_numpy(curve.astype(np.float32))


# --- Decoded sounds as a model hears them

MOST_BLOTTED = 4
"""A mask takes at most one part in so many of a sound, however short it is."""


def sound_features(
    samples: Samples, rate: int, settings: SoundInput, random: np.random.Generator | None = None
) -> Float[Tensor, "frames mels"]:
    """A decoded sound as frames of log-mel energies; `random`: changed as `augment` says."""
    if random is not None:
        samples, rate = augment_waveform(samples, rate, settings.augment, random)
    frames = torch.from_numpy(log_mels(resample(samples, rate, settings.rate), settings))
    if random is None:
        return frames
    if settings.augment.voice:
        frames = shift_spectrum(
            frames, random.uniform(1 - settings.augment.voice, 1 + settings.augment.voice), settings
        )
    if settings.augment.filter:
        frames = equalise(frames, settings.augment.filter, random)
    return masked(frames, settings, random)


def frames_of(samples: int, rate: int, settings: SoundInput) -> int:
    """Frames of a sound of so many samples at that rate, as a model reads it."""
    return frames_in(-(-samples * settings.rate // rate), settings)


def augment_waveform(
    samples: Samples, rate: int, settings: SoundAugmentSettings, random: np.random.Generator
) -> tuple[Samples, int]:
    """(samples, rate) with noise, and at another speed (and pitch): the same samples at another sampling rate."""
    if settings.noise:
        loudness = float(np.sqrt(np.mean(np.square(samples))))
        noise = random.normal(0, 1, len(samples)).astype(np.float32)
        samples = samples + np.float32(random.uniform(0, settings.noise) * loudness) * noise
    if settings.speed:
        rate = _rounded(rate * random.uniform(1 - settings.speed, 1 + settings.speed))
    return samples, rate


def masked(
    frames: Float[Tensor, "frames mels"], settings: SoundInput, random: np.random.Generator
) -> Float[Tensor, "frames mels"]:
    """Frames with stretches of time and bands of frequencies set to the mean (SpecAugment)."""
    augment = settings.augment
    made, mean = frames.clone(), frames.mean()
    number, mels = frames.shape
    longest = round(augment.time_width / 1000 * settings.rate / hop_of(settings))
    for _ in range(augment.time_masks):
        width = int(random.integers(0, min(longest, number // MOST_BLOTTED) + 1))
        start = int(random.integers(0, number - width + 1))
        made[start : start + width] = mean
    for _ in range(augment.frequency_masks):
        width = int(random.integers(0, augment.frequency_width + 1))
        start = int(random.integers(0, mels - width + 1))
        made[:, start : start + width] = mean
    return made


def _rounded(rate: float) -> int:
    """To whole hundreds."""
    return max(round(rate / 100) * 100, 100)


# --- Sounds as they are drawn

TALLEST = 240
"""Pixels of a spectrogram on the page, low to high."""

TICKS = (0.25, 0.5, 1, 2, 4, 8, 16)
"""Frequencies named on the axis of a spectrogram, in kHz."""

MAX_TICKS = 14
"""Names of frequencies that fit on the axis."""


@dataclass(frozen=True)
class Spectrogram(Drawable):
    """A sound as the model read it.

    energies: (frames, mels), log energy of each band; hop: seconds between frames; middles: (mels,), centre frequency
    of each band in Hz.
    """

    view: ClassVar[str] = "seq2see.seeing.sound:SoundOverlay"
    energies: NDArray[np.float32]
    hop: float
    middles: NDArray[np.float32]

    @property
    def seconds(self) -> float:
        return len(self.energies) * self.hop

    def ticks(self) -> tuple[list[float], list[str]]:
        """(positions among the bands, names) of round frequencies.

        >>> Spectrogram(np.zeros((4, 3), np.float32), 0.01, np.array([500, 1000, 3000], np.float32)).ticks()
        ([0.5, 1.5, 2.0], ['0.5', '1', '2'])
        """
        inside = [tick for tick in TICKS if self.middles[0] <= 1000 * tick <= self.middles[-1]]
        positions = np.interp([1000 * tick for tick in inside], self.middles, np.arange(len(self.middles)) + 0.5)
        places: list[float] = positions.tolist()
        spaced = [  # of crowded low frequencies only the highest is named
            number
            for number, place in enumerate(places)
            if number + 1 == len(places) or places[number + 1] - place > len(self.middles) / MAX_TICKS
        ]
        return [places[number] for number in spaced], [f"{inside[number]:g}" for number in spaced]


# --- The column


@inputs.register("sound")
class SoundField(MediaField):
    """Files that libsndfile reads, as frames of log-mel energies."""

    Settings: ClassVar[type[ColumnSettings]] = SoundInput
    example: ClassVar[str] = "speech.wav"
    hidden_parts: ClassVar[tuple[str, ...]] = ("",)
    settings: SoundInput

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        settings = self.settings
        frames = f"{settings.mels} log-mel energies of {settings.window:g} ms every {settings.hop:g} ms"
        frames += f", down to {settings.range:g} dB below the loudest"
        column = f"paths in column '{settings.column or name}', {settings.rate:,} samples a second"
        return f"{self.role(name)}: sounds, {column}, {frames}"

    def problem(self, value: str) -> str | None:
        try:
            self._samples(value)
        except MediaError as error:
            return str(error)
        return None

    def width(self, value: str) -> int:
        return max(frames_of(*self._size(value), self.settings) // FRAMES_PER_SYMBOL, 1)

    def extent(self, value: str) -> tuple[float, float]:
        number, rate = self._size(value)
        return 0.0, number / rate

    def _size(self, value: str) -> tuple[int, int]:
        """(number of samples, their rate)"""
        try:
            if self.decoder.in_process:  # the head of the file is enough
                return samples_of(value, self.settings)
            samples, rate = self._samples(value)
        except MediaError as error:
            raise UserError(f"{value}: {error}") from None
        return len(samples), rate

    def _samples(self, value: str) -> tuple[Samples, int]:
        samples, rate = self.decoder.arrays(value, self.settings)
        return samples, int(rate)

    def to_drawable(self, value: str) -> Spectrogram:
        """How loud each band is, as it was recorded: normalising would hide that silence is silent."""
        settings = self.settings.model_copy(update={"normalise": "none"})
        try:
            energies = sound_features(*self._samples(value), settings).numpy()
        except MediaError as error:
            raise UserError(f"{Path(value)}: {error}") from None
        return Spectrogram(energies, hop_of(settings) / settings.rate, centre_frequencies(settings).astype(np.float32))

    def preview(self, example: Example) -> dict[str, Any]:
        """The spectrogram that the model reads, time from left to right, low frequencies at the bottom."""
        mels = self.batch([example.value]).values[0].numpy()
        low, high = float(mels.min()), float(mels.max())
        grey = np.rint(255 * (mels - low) / max(high - low, 1e-9)).astype(np.uint8).T[::-1]
        pixels = grey.repeat(max(TALLEST // grey.shape[0], 1), axis=0)
        seconds = len(mels) * self.settings.hop / 1000
        axis = [f"{share * seconds:.2f} s" for share in (0, 0.25, 0.5, 0.75, 1)]
        return pixels_preview(pixels) | {"seconds": seconds, "axis": axis, "alt": f"spectrogram, {seconds:.2f} seconds"}

    def occlusion(self, column: Any, part: str = "", shape: Sequence[int] = (), *, changes: bool = False) -> Occlusion:
        return FrameOcclusion(column, shape[0])

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

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Frames:
        return random_frames(rows, length, self.settings.mels, random)

    def _read(self, values: Sequence[str], randoms: Sequence[np.random.Generator | None]) -> Frames:
        with ThreadPoolExecutor(min(len(values), cores()) or 1) as pool:
            read = list(pool.map(self._load, values, randoms))
        mask = pad_sequence([torch.ones(len(one), dtype=torch.bool) for one in read], batch_first=True)
        return Frames(pad_sequence(read, batch_first=True), mask)

    def _load(self, value: str, random: np.random.Generator | None) -> Tensor:
        try:
            return sound_features(*self._samples(value), self.settings, random)
        except MediaError as error:
            raise UserError(f"{Path(value)}: {error}") from None
