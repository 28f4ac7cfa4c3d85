"""What goes in: one class of settings for each kind of input."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from seq2see.settings.base import MOST_SIDE, Amount, Count, Positive, Settings, Share, Side, TextSettings, Weight
from seq2see.settings.encoders import EncoderSettings, by_kind

# ---------------- Inputs that are files

MOST_PIXELS = 65_000_000
"""Of a picture that is still read: as many as the cameras of phones take. A page of one grey, four times as large, is a
file of kilobytes and takes gigabytes to decode."""


class AugmentSettings(Settings):
    """How pictures are changed at random while a model is trained, so that it does not learn them by heart."""

    flip: bool = Field(False, description="mirror every other picture (no text in it, no left and right in captions)")
    crop: Share = Field(0.0, description="cut away up to so much of each side, at random")
    rotate: Annotated[float, Field(ge=0, le=45)] = Field(0.0, description="turn by up to so many degrees")
    shear: Annotated[float, Field(ge=0, le=45)] = Field(
        0.0, description="slant to either side by up to so many degrees"
    )
    stretch: Annotated[float, Field(ge=0, le=0.9)] = Field(
        0.0, description="make it wider or narrower by up to this share"
    )
    blur: Amount = Field(0.0, description="smear it with a radius of up to so many pixels of the file")
    light: Share = Field(0.0, description="change brightness and contrast by up to this share")
    noise: Amount = Field(0.0, description="deviation of noise added to every pixel, of 255")
    mask: Share = Field(0.0, description="share of the pixels that become black, at random")


class MediaSettings(Settings):
    """What all columns of files have."""

    column: str | None = Field(
        None, description="column of the table, which holds paths relative to the table; not given: the input's name"
    )
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


class ImageInput(MediaSettings):
    """One input that is a picture: a PNG, JPEG, WebP, GIF, BMP or TIFF file, whatever it is called."""

    kind: Literal["image"] = Field("image", description="what the column holds")
    height: Side = Field(224, description="pixels every picture is brought to")
    width: Annotated[int, Field(ge=0, le=MOST_SIDE)] = Field(
        224, description="... and across; 0: as many as its proportions give it (lines of text)"
    )
    fit: Literal["crop", "stretch", "pad"] = Field(
        "crop", description="how a picture of other proportions fits: its middle, all of it out of shape, or with edges"
    )
    colour: Literal["rgb", "grey"] = Field("rgb", description="three channels, or one")
    largest: Positive = Field(
        12_000, description=f"pixels of the longest side of a file that is still read; {MOST_PIXELS:,} in all"
    )
    widest: Count = Field(0, description="width 0: lines are squeezed to at most so many pixels; 0: no limit")
    direction: Literal["left-to-right", "right-to-left", "auto"] = Field(
        "left-to-right",
        description="which column of places is the first; auto: as most letters of the training texts are written",
    )
    augment: AugmentSettings = AugmentSettings()

    @property
    def channels(self) -> int:
        return 3 if self.colour == "rgb" else 1


# ---------------- Inputs that are sounds


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


# ---------------- Inputs that are videos

Part = Annotated[float, Field(ge=0, le=1)]


class VideoAugmentSettings(Settings):
    """How clips are changed at random while a model is trained: all frames of a clip alike, but for `jitter`."""

    flip: bool = Field(False, description="mirror every other clip (no left and right in captions, no text in it)")
    shift: Share = Field(0.0, description="move the picture by up to this share of its sides, at random")
    light: Share = Field(0.0, description="change brightness and contrast by up to this share")
    jitter: Share = Field(0.0, description="so large a share of the frames is left out or stands there twice")


class VideoInput(MediaSettings):
    """One input that is a video: an MP4, MOV, Matroska, WebM, AVI, MPEG, MPEG-TS, Ogg, FLV, WMV or GIF file (extra
    `video`), without its sound."""

    kind: Literal["video"] = Field("video", description="what the column holds")
    every: Positive = Field(1, description="every so many-th frame is read")
    rate: Amount = Field(0.0, description="so many frames a second are read; 0: as `every` says")
    frames: Count = Field(0, description="so many frames are read, spread evenly over the clip; 0: as `rate` says")
    most: Positive = Field(256, description="at most so many: of longer clips this many, spread evenly")
    start: Amount = Field(0.0, description="seconds at which reading begins")
    end: Amount = Field(0.0, description="seconds at which it ends; 0: with the clip")
    height: Side = Field(112, description="pixels every frame is brought to")
    width: Side = Field(112, description="... and across")
    fit: Literal["crop", "stretch", "pad"] = Field(
        "crop", description="how a frame of other proportions fits: its middle, all of it out of shape, or with edges"
    )
    region: tuple[Part, Part, Part, Part] = Field(
        (0.0, 0.0, 1.0, 1.0), description="the part of each frame that is read: left, top, right, bottom, from 0 to 1"
    )
    colour: Literal["rgb", "grey"] = Field("rgb", description="three channels, or one")
    longest: Weight = Field(60.0, description="seconds of the longest file that is still read")
    largest: Positive = Field(4096, description="pixels of the longest side of a file that is still read")
    augment: VideoAugmentSettings = VideoAugmentSettings()

    @property
    def channels(self) -> int:
        return 3 if self.colour == "rgb" else 1


# ---------------- Inputs that are rows of numbers, and the noise that a model learns to take away


class NoiseSettings(Settings):
    """How a vector is spoilt at random while a model is trained; what it should give stays as it is (denoising)."""

    kind: Literal["none", "gaussian", "masking"] = Field(
        "none", description="gaussian: added to every number; masking: some become 0 (standardised: their mean)"
    )
    amount: Amount = Field(
        0.0, description="gaussian: its deviation (standardised: of theirs); masking: the share of the numbers, below 1"
    )


class VectorInput(Settings):
    """One input that is a row of numbers, always as many: how many is learned from the first row."""

    kind: Literal["vector"] = Field(
        "vector", description="what the column holds: numbers between spaces or commas, or a list of numbers"
    )
    column: str | None = Field(None, description="column of the table; not given: the input's name")
    standardise: bool = Field(True, description="read (x - mean) / deviation, of the rows trained on")
    noise: NoiseSettings = NoiseSettings()
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


class GivenText(TextSettings):
    """What inputs that are texts have beyond what all columns of text have."""

    may_be_empty: bool = Field(
        False,
        description="rows without it are kept and read as a text of no words (a dialogue that begins); false: such "
        "rows are left out",
    )


class TextInput(GivenText):
    """One input; its name is chosen freely and used in `attention.over`, `decoder.start` and `decoder.every_step`."""

    kind: Literal["text"] = Field("text", description="what the column holds")
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


class TextsInput(GivenText):
    """One input that holds several texts: the sentences of a document, the utterances of a dialogue so far."""

    kind: Literal["texts"] = Field("texts", description="what the column holds; a list of texts may stand there")
    sentences: Annotated[str, Field(min_length=1)] = Field(
        "rule",
        description="where they end: rule (full stops and their like), newline, tab, or a mark such as |||",
    )
    max_sentences: Count = Field(0, description="at most so many are read; 0: no limit")
    keep: Literal["first", "last"] = Field(
        "first", description="which ones max_sentences leaves: a document says first what matters, a dialogue last"
    )
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


class SetInput(TextSettings):
    """One input that holds a set: elements in no order. Those that stand there twice count twice."""

    kind: Literal["set"] = Field("set", description="what the column holds; a list of elements may stand there")
    tokens: Literal["symbol", "word", "character"] = Field(
        "symbol", description="what one element is; symbol: what stands between spaces"
    )
    separator: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="what stands between elements, each of which is one symbol then, with the spaces in it: newline, "
        "tab, or a mark such as ; (not given: tokens tells them apart)",
    )
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


InputSettings = Annotated[
    Annotated[TextInput, Tag("text")]
    | Annotated[TextsInput, Tag("texts")]
    | Annotated[SetInput, Tag("set")]
    | Annotated[ImageInput, Tag("image")]
    | Annotated[SoundInput, Tag("sound")]
    | Annotated[VideoInput, Tag("video")]
    | Annotated[VectorInput, Tag("vector")],
    by_kind("text"),
]
