"""What comes out: one class of settings for each kind of output."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from seq2see.settings.base import Settings, Side, TextSettings

# Of every kind: `said`, what it is called; `one_step`, whether it is given whole, by a decoder that reads no symbol;
# `numeric`, whether it is made of numbers, which are near or far from the right ones and have no probability.

KINDS = "text, label, vector or image"

FORWARD, BACKWARD = "forward", "backward"
"""The labels of `made: direction`; a clip as it lies on the disk is the first."""


class TextOutput(TextSettings):
    """An output written symbol by symbol."""

    said: ClassVar[str] = "a text"
    one_step: ClassVar[bool] = False
    numeric: ClassVar[bool] = False
    kind: Literal["text"] = Field("text", description=KINDS)


class LabelOutput(Settings):
    """An output that is one of the classes found in the data."""

    said: ClassVar[str] = "a label"
    one_step: ClassVar[bool] = True
    numeric: ClassVar[bool] = False
    kind: Literal["label"] = Field("label", description=KINDS)
    column: str | None = Field(None, description="column of the table; not given: `output`")
    made: Literal["direction"] | None = Field(
        None,
        description="labels that no column holds; direction: each row is read both ways, its videos forward as they "
        "are and backward, and the label says which",
    )


class VectorOutput(Settings):
    """An output that is a row of numbers, always as many."""

    said: ClassVar[str] = "a vector"
    one_step: ClassVar[bool] = True
    numeric: ClassVar[bool] = True
    kind: Literal["vector"] = Field("vector", description=KINDS)
    column: str | None = Field(None, description="column of the table; not given: `output`")
    standardise: bool = Field(
        True, description="learn (x - mean) / deviation, of the rows trained on; what is given back is as it was"
    )


class ImageOutput(Settings):
    """An output that is a picture, from 0 (black) to 1; what is not given is as in the first picture that goes in."""

    said: ClassVar[str] = "a picture"
    one_step: ClassVar[bool] = True
    numeric: ClassVar[bool] = True
    kind: Literal["image"] = Field("image", description=KINDS)
    column: str | None = Field(
        None, description="column of the table, which holds paths relative to the table; not given: `output`"
    )
    height: Side = Field(32, description="pixels")
    width: Side = Field(32, description="... and across")
    fit: Literal["crop", "stretch", "pad"] = Field("crop", description="how a picture of other proportions fits")
    colour: Literal["rgb", "grey"] = Field("rgb", description="three channels, or one")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return (3 if self.colour == "rgb" else 1), self.height, self.width


OutputSettings = Annotated[TextOutput | LabelOutput | VectorOutput | ImageOutput, Field(discriminator="kind")]
