"""Inputs that are videos: which frames of a file are read, how large they are, and how they change while learning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seq2see.recipe.basics import Amount, Count, Positive, Settings, Share, Side, Weight
from seq2see.recipe.media_settings import MediaSettings

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
