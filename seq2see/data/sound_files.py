"""Sound files: opened with care, decoded and mixed to one channel. Nothing here needs torch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal

import numpy as np
from pydantic import Field

from seq2see.data.media_files import MediaError, MediaSettings, check_file, decoding
from seq2see.data.resampling import Samples
from seq2see.errors import imported
from seq2see.settings.base import Amount, Count, Positive, Settings, Weight


class SoundAugmentSettings(Settings):
    """How sounds are changed at random while a model is trained (masks: SpecAugment, Park et al. 2019)."""

    time_masks: Count = Field(0, description="so many stretches of time are blotted out")
    time_width: Weight = Field(100.0, description="... each of up to so many ms, and of at most a quarter of the sound")
    frequency_masks: Count = Field(0, description="so many bands of frequencies are blotted out")
    frequency_width: Positive = Field(10, description="... each of up to so many mels")
    speed: Annotated[float, Field(ge=0, le=0.5)] = Field(0.0, description="faster or slower by up to this share")
    voice: Annotated[float, Field(ge=0, le=0.5)] = Field(
        0.0, description="frequencies higher or deeper by up to this share, as other throats would speak"
    )
    filter: Amount = Field(
        0.0,
        description="neighbouring frequencies louder or softer by up to so many deviations, as other rooms and "
        "microphones would make them",
    )
    noise: Amount = Field(0.0, description="white noise, up to this share of the sound's own loudness")


class SoundInput(MediaSettings):
    """One input that is a sound: a WAV, FLAC, Ogg, MP3, AIFF or AU file (extra `sound`), its channels mixed to one."""

    usual_encoder: ClassVar[str] = "pyramidal"
    kind: Literal["sound"] = Field("sound", description="what the column holds")
    rate: Annotated[int, Field(ge=1000, le=1_000_000)] = Field(
        16_000, description="samples a second every sound is brought to"
    )
    mels: Annotated[int, Field(gt=0, le=256)] = Field(80, description="bands of frequencies: numbers in each frame")
    window: Annotated[float, Field(gt=0, le=10_000)] = Field(25.0, description="ms of sound in each frame")
    hop: Annotated[float, Field(gt=0, le=10_000)] = Field(10.0, description="ms from one frame to the next")
    range: Annotated[float, Field(gt=0, le=200)] = Field(
        80.0, description="dB: what is so far below a sound's loudest band counts as silence; less hides a room's noise"
    )
    longest: Weight = Field(30.0, description="seconds of the longest file that is still read")
    normalise: Literal["bands", "whole", "none"] = Field(
        "whole", description="per file to mean 0 and deviation 1: each band for itself, all of them alike, or not"
    )
    augment: SoundAugmentSettings = SoundAugmentSettings()

    @property
    def channels(self) -> int:
        """Numbers in each frame."""
        return self.mels


FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3", "AIFF", "AU")
"""The formats that are read, whatever a file is called; libsndfile knows more, which are hardly used."""

LOWEST, HIGHEST = 1_000, 384_000
"""Samples a second of files that are read; outside of them a file's head is damaged, or it holds no sound."""

BLOCK = 1 << 20
"""Numbers that are decoded at a time: a file may have hundreds of channels."""

PLAIN = (0x0001, 0x0003, 0xFFFE)
"""Formats whose samples all take the same number of bytes: whole numbers, floating point, and either of these."""

UNKNOWN = 0x7FFF0000
"""Programs that write to a pipe cannot know how long a sound will be: they say about as much, all ones, or nothing."""


def decoded(path: str | Path, settings: SoundInput) -> tuple[Samples, int]:
    """(samples (number,) from -1 to 1, their rate): the mean of the channels."""
    with _opened(path, settings) as file:
        samples, number = np.empty(file.frames, dtype=np.float32), 0
        while number < len(samples):
            block = file.read(max(BLOCK // file.channels, 1), dtype="float32", always_2d=True)
            if not len(block):
                raise MediaError(f"damaged or cut short: {number:,} of {len(samples):,} samples could be read")
            samples[number : number + len(block)] = block.mean(1)
            number += len(block)
        rate = int(file.samplerate)
    if not np.isfinite(samples).all():
        raise MediaError("damaged: it holds samples that are no numbers")
    return samples, rate


def problem_of(path: str | Path, settings: SoundInput) -> str | None:
    """Why a sound cannot be used; None where it can. It is read to its end, so that nothing comes up later."""
    try:
        decoded(path, settings)
    except MediaError as error:
        return str(error)
    return None


def samples_of(path: str | Path, settings: SoundInput) -> tuple[int, int]:
    """(number of samples, their rate); only the file's head is read."""
    with _opened(path, settings) as file:
        return int(file.frames), int(file.samplerate)


@contextmanager
def _opened(path: str | Path, settings: SoundInput) -> Iterator[Any]:
    """The open file, its format, rate and length checked before anything is decoded.

    libsndfile gets an open file and no name: for some names it would look for other files, or believe their suffix.
    """
    soundfile = imported("soundfile", extra="sound")
    with check_file(path, "sound").open("rb") as opened:
        with decoding(f"not a sound that libsndfile can read (allowed: {', '.join(FORMATS)})"):
            file = soundfile.SoundFile(opened.fileno(), closefd=False)
        with file, decoding():
            if file.format not in FORMATS:
                raise MediaError(f"a sound of format {file.format}; allowed: {', '.join(FORMATS)}")
            short = missing(path)
            if short is not None:
                raise MediaError(f"cut short: {short} that its head promises are there")
            if not file.frames:
                raise MediaError("a sound without any samples, of length zero")
            if not LOWEST <= file.samplerate <= HIGHEST:
                raise MediaError(f"{file.samplerate:,} samples a second; allowed: from {LOWEST:,} to {HIGHEST:,}")
            seconds = file.frames / file.samplerate
            if seconds > settings.longest:
                raise MediaError(f"{seconds:,.1f} s long; allowed: at most {settings.longest:g} s (`longest`)")
            yield file


def missing(path: str | Path) -> str | None:
    """What of its samples is there, where a file is cut short: '4,000 of 8,000 samples'; None where it is whole, or no
    WAV file, or does not say."""
    with Path(path).open("rb") as file:
        head = file.read(12)
        if head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
            return None
        found = _chunks(file)
    if found is None:
        return None
    promised, there, block = found
    if there >= promised or not promised:
        return None
    if block:
        return f"{there // block:,} of {promised // block:,} samples"
    return f"{there:,} of {promised:,} bytes"


def _chunks(file: BinaryIO) -> tuple[int, int, int] | None:
    """(bytes of sound that are promised, bytes that are there, bytes of each sample of all channels or 0); None where
    the head does not say."""
    block, whole = 0, None
    while len(head := file.read(8)) == 8:
        name, size = struct.unpack("<4sI", head)
        if name == b"data":
            start = file.tell()
            promised = size if whole is None else whole
            known = whole is not None or 0 < promised < UNKNOWN
            return (promised, file.seek(0, 2) - start, block) if known else None
        body = file.read(size) if size < 1 << 16 else b""
        if name == b"fmt " and len(body) >= 14:
            form, _, _, _, width = struct.unpack("<HHIIH", body[:14])
            block = width if form in PLAIN else 0
        if name == b"ds64" and len(body) >= 16:
            (whole,) = struct.unpack("<Q", body[8:16])
        file.seek((size if not body else 0) + size % 2, 1)
    return None
