"""Inputs that are sounds: how a recording becomes frames of log-mel energies, and how it is changed while learning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seq2see.recipe.basics import Amount, Count, Positive, Settings, Weight
from seq2see.recipe.media_settings import MediaSettings


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
