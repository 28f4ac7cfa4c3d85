"""Sound files: opened safely, decoded, mixed to one channel and resampled. Nothing here needs torch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seq2see.data.media_files import MediaError, MediaSettings, check_file, decoding
from seq2see.errors import imported
from seq2see.registry import Problem
from seq2see.settings.base import Amount, Count, Positive, Settings, Weight, no_effect

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

Samples = NDArray[np.float32]


def resample(samples: Samples, rate: int, wanted: int) -> Samples:
    """The sound at another rate, ceil(samples * wanted / rate) samples long, resampled without aliasing by libsoxr.

    >>> len(resample(np.zeros(441, dtype=np.float32), 44_100, 16_000))
    160
    """
    if rate == wanted or not len(samples):
        return samples
    length = -(-len(samples) * wanted // rate)
    converted = imported("soxr", extra="sound").resample(samples, rate, wanted, quality="HQ")[:length]
    return np.pad(converted, (0, length - len(converted))).astype(np.float32, copy=False)


LEAST = 2
"""Samples without which a window has no frequencies."""


class SoundAugmentSettings(Settings):
    """Random augmentation of sounds during training (masks: SpecAugment, Park et al. 2019)."""

    time_masks: Count = Field(0, description="number of time masks")
    time_width: Weight = Field(100.0, description="maximum width of a time mask in ms, at most a quarter of the sound")
    frequency_masks: Count = Field(0, description="number of frequency masks")
    frequency_width: Positive = Field(10, description="maximum width of a frequency mask in mel bands")
    speed: Annotated[float, Field(ge=0, le=0.5)] = Field(0.0, description="maximum relative change of speed")
    voice: Annotated[float, Field(ge=0, le=0.5)] = Field(
        0.0,
        description="maximum relative shift of frequencies, like other speakers (vocal tract length perturbation)",
    )
    filter: Amount = Field(
        0.0,
        description="maximum smooth gain over frequencies in standard deviations, like other rooms and microphones",
    )
    noise: Amount = Field(0.0, description="maximum white noise relative to the loudness of the sound")


class SoundInput(MediaSettings):
    """A sound input: WAV, FLAC, Ogg, MP3, AIFF or AU files (extra `sound`), mixed to one channel."""

    usual_encoder: ClassVar[str] = "pyramidal"
    content: ClassVar[str] = "frames"
    noun: ClassVar[str] = "a sound"
    media: ClassVar[str] = "audio/*"
    decoded_arrays: ClassVar[int] = 2
    timed: ClassVar[bool] = True
    kind: Literal["sound"] = Field("sound", description="kind of the input")
    rate: Annotated[int, Field(ge=1000, le=1_000_000)] = Field(
        16_000, description="sampling rate that sounds are resampled to, in Hz"
    )
    mels: Annotated[int, Field(gt=0, le=256)] = Field(80, description="number of mel bands, the size of each frame")
    window: Annotated[float, Field(gt=0, le=10_000)] = Field(25.0, description="length of a frame in ms")
    hop: Annotated[float, Field(gt=0, le=10_000)] = Field(10.0, description="distance between frames in ms")
    range: Annotated[float, Field(gt=0, le=200)] = Field(
        80.0,
        description="dynamic range in dB: energies further below the loudest band count as silence",
    )
    longest: Weight = Field(30.0, description="maximum length of a file in seconds")
    normalise: Literal["bands", "whole", "none"] = Field(
        "whole", description="normalise each file to mean 0 and deviation 1: per band, as a whole, or not"
    )
    augment: SoundAugmentSettings = SoundAugmentSettings()

    @property
    def channels(self) -> int:
        """Numbers in each frame."""
        return self.mels

    @property
    def most_frames(self) -> int:
        """Frames of the longest file."""
        return ceil(self.longest * 1000 / self.hop)

    @property
    def limit_text(self) -> str:
        return f"{self.longest:g} seconds"

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        window, augment = self.window, self.augment
        if self.hop > window:
            message = f"{self.hop:g} ms skips sound between windows of {window:g} ms; allowed: at most {window:g}"
            yield Problem(f"{path}.hop", message, "sound-windows")
        if min(window * self.rate / 1000, LEAST * self.hop * self.rate / 1000) < LEAST:
            message = f"shorter than {LEAST} samples, or hop than one; allowed: more ms, or a rate"
            yield Problem(f"{path}.window", message, "sound-windows")
        if window / 1000 > self.longest:
            message = f"{self.longest:g} s is less than one window of {window:g} ms"
            yield Problem(f"{path}.longest", message, "sound-windows")
        if augment.frequency_masks and augment.frequency_width >= self.mels:
            message = f"{augment.frequency_width} would hide all {self.mels} mels; allowed: less than {self.mels}"
            yield Problem(f"{path}.augment.frequency_width", message, "frequency-masks")
        for axis in ("time", "frequency"):
            if not getattr(augment, f"{axis}_masks"):
                keys, reason = [f"{axis}_width"], f"augment.{axis}_masks is 0"
                yield from no_effect(augment, f"{path}.augment", keys, reason)

    def decode(self, path: str) -> list[NDArray[Any]]:
        """The samples, and their rate."""
        samples, rate = read_sound(path, self)
        return [samples, np.asarray(rate, dtype=np.int64)]


FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3", "AIFF", "AU")
"""Supported formats, whatever the file name; libsndfile reads more, which are rare."""

LOWEST, HIGHEST = 1_000, 384_000
"""Sampling rates that are accepted; outside of them the header is damaged, or it is not a sound."""

BLOCK = 1 << 20
"""Numbers decoded at a time: a file may have hundreds of channels."""

PLAIN = (0x0001, 0x0003, 0xFFFE)
"""Formats whose samples all have the same number of bytes: integer, floating point, and either of these."""

UNKNOWN = 0x7FFF0000
"""Programs that write to a pipe cannot know the length of a sound: they write about this value, all ones, or zero."""


def read_sound(path: str | Path, settings: SoundInput) -> tuple[Samples, int]:
    """(samples (number,) from -1 to 1, their rate): the mean of the channels."""
    with _open(path, settings) as file:
        samples, number = np.empty(file.frames, dtype=np.float32), 0
        while number < len(samples):
            block = file.read(max(BLOCK // file.channels, 1), dtype="float32", always_2d=True)
            if not len(block):
                raise MediaError(f"damaged or cut short: {number:,} of {len(samples):,} samples could be read")
            samples[number : number + len(block)] = block.mean(1)
            number += len(block)
        rate = int(file.samplerate)
    if not np.isfinite(samples).all():
        raise MediaError("damaged: it contains samples that are not numbers")
    return samples, rate


def problem_of(path: str | Path, settings: SoundInput) -> str | None:
    """Why a sound cannot be used, or None. It is decoded completely, so that nothing fails later."""
    try:
        read_sound(path, settings)
    except MediaError as error:
        return str(error)
    return None


def samples_of(path: str | Path, settings: SoundInput) -> tuple[int, int]:
    """(number of samples, their rate); only the header is read."""
    with _open(path, settings) as file:
        return int(file.frames), int(file.samplerate)


@contextmanager
def _open(path: str | Path, settings: SoundInput) -> Iterator[Any]:
    """The open file, its format, rate and length checked before decoding.

    libsndfile gets an open file and no name: for some names it would look for other files, or trust their suffix.
    """
    soundfile = imported("soundfile", extra="sound")
    with check_file(path, "sound").open("rb") as opened:
        with decoding(f"not a sound that libsndfile can read (allowed: {', '.join(FORMATS)})"):
            file = soundfile.SoundFile(opened.fileno(), closefd=False)
        with file, decoding():
            if file.format not in FORMATS:
                raise MediaError(f"unsupported sound format {file.format}; allowed: {', '.join(FORMATS)}")
            missing = missing_samples(path)
            if missing is not None:
                raise MediaError(f"cut short: {missing} promised by its header are there")
            if not file.frames:
                raise MediaError("a sound of length zero")
            if not LOWEST <= file.samplerate <= HIGHEST:
                raise MediaError(f"{file.samplerate:,} samples per second; allowed: from {LOWEST:,} to {HIGHEST:,}")
            seconds = file.frames / file.samplerate
            if seconds > settings.longest:
                raise MediaError(f"{seconds:,.1f} s long; allowed: at most {settings.longest:g} s (`longest`)")
            yield file


def missing_samples(path: str | Path) -> str | None:
    """How much of a truncated WAV file is present: '4,000 of 8,000 samples'; None if it is complete, not WAV, or
    does not say."""
    with Path(path).open("rb") as file:
        head = file.read(12)
        if head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
            return None
        sizes = _data_size(file)
    if sizes is None:
        return None
    promised, present, block = sizes
    if present >= promised or not promised:
        return None
    if block:
        return f"{present // block:,} of {promised // block:,} samples"
    return f"{present:,} of {promised:,} bytes"


def _data_size(file: BinaryIO) -> tuple[int, int, int] | None:
    """(promised bytes of sound, present bytes, bytes of each sample of all channels or 0); None if the header does
    not say."""
    block, total = 0, None
    while len(head := file.read(8)) == 8:
        name, size = struct.unpack("<4sI", head)
        if name == b"data":
            start = file.tell()
            promised = size if total is None else total
            known = total is not None or 0 < promised < UNKNOWN
            return (promised, file.seek(0, 2) - start, block) if known else None
        body = file.read(size) if size < 1 << 16 else b""
        if name == b"fmt " and len(body) >= 14:
            form, _, _, _, width = struct.unpack("<HHIIH", body[:14])
            block = width if form in PLAIN else 0
        if name == b"ds64" and len(body) >= 16:
            (total,) = struct.unpack("<Q", body[8:16])
        file.seek((size if not body else 0) + size % 2, 1)
    return None
