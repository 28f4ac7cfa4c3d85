"""Inputs that are files: pictures, and what may happen to them on the way in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seq2see.recipe.basics import MOST_SIDE, Amount, Count, Positive, Settings, Share, Side
from seq2see.recipe.encoder_settings import EncoderSettings

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
